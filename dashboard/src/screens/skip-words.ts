/** Why an occurrence was skipped, from the reason in the ledger: `missed, and only the latest missed one fires`. Null for a reason of its own kind. */
export function skipWords(reason: string): string | null {
  if (reason === "paused") return "paused";
  const [, kind, why = ""] = /^(misfire|overlap): (?:missed, and )?(.*)$/s.exec(reason) ?? [];
  if (kind === undefined) return null;
  return kind === "misfire" ? `missed, and ${why}` : why.replace(" is ", " was ");
}
