/**
 * `npm run matrix -- [--ends] [--short] [--list] [name …]`: the store contract, the random comparison and the process tests on other
 * versions of Node, of clients and of servers than those that everything else runs on.
 *
 * - `--ends` runs the oldest and the newest of each; `--short` tries fewer seeds and leaves out the variants of the contract that
 *   have little to do with versions: what CI does.
 * - A name is a group (`node`, `clients`, `servers`) or a part of a row's name (`postgres`, `ioredis@5`, `valkey-9`).
 *
 * A version that cannot be fetched is skipped with the reason; with `CI=true` that is a failure.
 */
import { parseArgs } from "node:util";
import { type Row, rows } from "./rows.ts";
import { type RowResult, runRow } from "./run-row.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ends: { type: "boolean", default: false },
    short: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
  },
});

/** Two at a time: tests wait for servers more than they compute. */
const together = 2;

const chosen = rows.filter((row) => (!values.ends || row.isEnd) && isNamed(row));
if (chosen.length === 0) {
  console.error(
    `expected a row of the matrix (${rows.map(({ name }) => name).join(", ")}), got ${positionals}`,
  );
  process.exit(2);
}
if (values.list) {
  for (const { name, group, isEnd } of chosen)
    console.log(`${group.padEnd(8)} ${name}${isEnd ? " (ends)" : ""}`);
  process.exit(0);
}

const results: RowResult[] = [];
const waiting = [...chosen];
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => waiting.splice(0));
await Promise.all(Array.from({ length: together }, work));
console.log(`\n${table(results)}`);

const isCi = process.env["CI"] === "true";
const namesOf = (outcome: RowResult["outcome"]): string[] =>
  results.filter((result) => result.outcome === outcome).map(({ row }) => row.name);
const [failed, missing] = [namesOf("failed"), namesOf("skipped")];
if (failed.length > 0) console.error(`matrix: failed on ${failed.join(", ")}`);
if (missing.length > 0) {
  const verdict = isCi ? "with CI=true that is a failure" : "they were skipped";
  console.error(`matrix: could not be fetched: ${missing.join(", ")}; ${verdict}`);
}
process.exitCode = failed.length > 0 || (isCi && missing.length > 0) ? 1 : 0;

function isNamed({ name, group }: Row): boolean {
  return positionals.length === 0 || positionals.some((wanted) => wanted === group || name.includes(wanted));
}

async function work(): Promise<void> {
  for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
    const result = await runRow(row, { isShort: values.short });
    results.push(result);
    const { outcome, passed, seconds, note } = result;
    console.log(`${outcome.padEnd(7)} ${row.name} (${passed} tests, ${seconds} s)${note && `\n${note}`}`);
  }
}

function table(all: readonly RowResult[]): string {
  const sorted = chosen.flatMap((row) => all.find((result) => result.row === row) ?? []);
  const lines = sorted.map(({ row, outcome, servers, passed, failed, seconds }) => {
    const cells = [row.name, servers.join(", "), outcome, passed, failed, `${seconds} s`];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    "| version | servers | outcome | passed | failed | time |",
    "| --- | --- | --- | --- | --- | --- |",
    ...lines,
  ].join("\n");
}
