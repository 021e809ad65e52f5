/** An argument that can be pasted into a shell and stays one argument. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A command about something that has a name; one that begins with a dash is not taken for an option. */
export function commandFor(command: string, ...names: readonly string[]): string {
  const words = names.map(shellWord);
  const dash = names.some((name) => name.startsWith("-")) ? ["--"] : [];
  return ["escapement", command, ...dash, ...words].join(" ");
}
