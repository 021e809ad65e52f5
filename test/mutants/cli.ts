/**
 * `npm run mutants`: puts each bug of lists/ into a copy of the sources and runs the tests that must notice. A mutant that no test notices
 * is a hole in the tests; one whose text is no longer in the sources has to be written anew. `-- redis` runs those whose file or name has
 * that in it, `-- --check` only looks whether all of them still fit.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { memory } from "./lists/memory.ts";
import { mysql } from "./lists/mysql.ts";
import { postgres } from "./lists/postgres.ts";
import { redis } from "./lists/redis.ts";
import { roles } from "./lists/roles.ts";
import { sqlite } from "./lists/sqlite.ts";
import { state } from "./lists/state.ts";
import type { Mutant } from "./mutant.ts";
import { occurrences, root, type Verdict, Workshop } from "./workshop.ts";

const all: readonly Mutant[] = [...state, ...memory, ...sqlite, ...postgres, ...mysql, ...redis, ...roles];

type Row = readonly [mutant: Mutant, kind: Verdict["kind"] | "equivalent", by: string];

async function main(words: readonly string[]): Promise<number> {
  const isCheck = words.includes("--check");
  const wanted = words.filter((word) => word !== "--check");
  const unknown = wanted.filter((word) => word.startsWith("-"));
  if (unknown.length > 0) return refuse(`unknown option ${unknown.join(" ")}; the only one is --check`);
  const chosen = all.filter(({ file, name }) => wanted.every((word) => `${file} ${name}`.includes(word)));
  if (chosen.length === 0)
    return refuse(`no mutant has ${wanted.join(" and ")} in its file or name; lists/ has them all`);
  const misfits = chosen.filter((mutant) => occurrences(mutant) !== 1);
  for (const mutant of misfits)
    console.error(
      `${mutant.file}: expected the text of "${mutant.name}" once, found it ${occurrences(mutant)} times: ${mutant.find}`,
    );
  if (misfits.length > 0) return 1;
  console.log(`${chosen.length} mutants of ${new Set(chosen.map(({ file }) => file)).size} files fit`);
  if (isCheck) return 0;
  await using _servers = await shareServers();
  const rows = await runAll(chosen);
  return report(rows) ? 0 : 1;
}

function refuse(why: string): number {
  console.error(why);
  return 2;
}

/** Tests with and without mutants share one set of servers; it ends with this process, in whatever way that ends. */
async function shareServers(): Promise<AsyncDisposable> {
  const holder = spawn(process.execPath, [join(root, "testbed/holder.ts")], {
    stdio: ["pipe", "pipe", "inherit"],
    detached: true,
  });
  const ended = once(holder, "exit");
  const [path] = await once(holder.stdout, "data");
  process.env["ESCAPEMENT_TESTBED"] = String(path).trim();
  return {
    async [Symbol.asyncDispose]() {
      holder.stdin.end();
      await ended;
    },
  };
}

async function runAll(chosen: readonly Mutant[]): Promise<Row[]> {
  const rows: Row[] = chosen.flatMap((mutant): Row[] =>
    mutant.equivalent === undefined ? [] : [[mutant, "equivalent", mutant.equivalent]],
  );
  const queue = chosen.filter(({ equivalent }) => equivalent === undefined);
  const originals = new Map<string, Promise<number>>();
  const work = async (): Promise<void> => {
    using workshop = new Workshop();
    for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
      const key = JSON.stringify([mutant.tests, mutant.pattern]);
      const original = originals.get(key) ?? secondsOf(workshop, mutant);
      originals.set(key, original);
      const { kind, by, seconds } = await workshop.try(mutant, await original);
      console.log(`${kind.padEnd(10)} ${mutant.file}: ${mutant.name} (${seconds} s; ${by})`);
      rows.push([mutant, kind, by]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), 4) }, work));
  return rows;
}

/** How long the tests of a mutant take without it; it throws when they fail, or are none. */
async function secondsOf(workshop: Workshop, mutant: Mutant): Promise<number> {
  const { tests, pattern } = mutant;
  const { kind, by, seconds } = await workshop.tryOriginal(mutant);
  if (kind !== "survived" || by.startsWith("0 "))
    throw new Error(`expected ${tests.join(", ")} (${pattern ?? "all"}) to pass without a mutant: ${by}`);
  return seconds;
}

function report(rows: readonly Row[]): boolean {
  console.log("\n| file | killed | survived | equivalent |\n| --- | --- | --- | --- |");
  for (const [file, own] of Map.groupBy(rows, ([{ file }]) => file)) {
    const count = (...kinds: Row[1][]): number => own.filter(([, kind]) => kinds.includes(kind)).length;
    console.log(`| ${file} | ${count("killed")} | ${count("survived", "broken")} | ${count("equivalent")} |`);
  }
  const bad = rows.filter(([, kind]) => kind === "survived" || kind === "broken");
  for (const [{ file, name }, kind, by] of bad) console.error(`${kind}: ${file}: ${name} (${by})`);
  return bad.length === 0;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
process.exitCode = await main(process.argv.slice(2));
