/** `npm run verify:bugs [-- <part of a name>]`: each bug must be caught, and the product without one must pass. */
import { print, table } from "../../../src/cli/output.ts";
import { bugs } from "./bugs.ts";
import { type Hunt, hunt, soundRuns } from "./hunt.ts";

const wanted = process.argv[2] ?? "";
const seed = Number(process.env["ESCAPEMENT_SEED"] ?? 1);
const chosen = [...soundRuns, ...bugs].filter(({ name }) => name.includes(wanted));
const hunts: Hunt[] = [];
for (const bug of chosen) {
  const one = await hunt(bug, seed);
  hunts.push(one);
  process.stderr.write(`${one.caught ? "ok  " : "FAIL"}  ${one.bug}\n`);
  if (one.caught) continue;
  for (const { kind, subject, detail } of one.result.verdict.violations.slice(0, 10))
    process.stderr.write(`      ${kind} ${subject}: ${detail}\n`);
}
const rows = hunts.map(({ bug, found, caught, result }) => [
  bug,
  caught ? (result.verdict.valid ? "passes" : "caught") : "NOT AS IT SHOULD BE",
  Object.entries(found)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(", ") || "nothing",
  result.verdict.violations[0]?.detail ?? "",
]);
print(false, null, () => table(["bug", "verdict", "found", "for example"], rows));
if (hunts.some(({ caught }) => !caught)) process.exitCode = 1;
