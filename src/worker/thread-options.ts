/**
 * Flags of node whose module or condition a thread needs as well; each is followed by a value, or has it behind an
 * equals sign.
 */
const kept = ["--import", "--require", "-r", "--loader", "--experimental-loader", "--conditions", "-C"];

/**
 * How to start a thread from a file. By itself it inherits the flags of its process, which is right, except for
 * `--input-type`: that is for code on the command line, and node refuses to load a file under it.
 */
export function threadOptions(flags: readonly string[] = process.execArgv): { readonly execArgv?: string[] } {
  if (!flags.some((flag) => flag.startsWith("--input-type"))) return {};
  const execArgv = flags.flatMap((flag, index) => {
    if (kept.includes(flag)) return [flag, flags[index + 1] ?? ""];
    return kept.some((name) => flag.startsWith(`${name}=`)) ? [flag] : [];
  });
  return { execArgv };
}
