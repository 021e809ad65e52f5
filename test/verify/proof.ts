/**
 * `npm run proof -- [--duration 60s] [--jobs 6000] [--nodes 4] [--lease 2s] [--seed N] [--stores sqlite,postgres,mysql,redis] [--write docs/PROOF.md]`:
 * verify on every store, all guarantees, all faults, two stores at a time. Fails when a promise was broken. With `--reuse`, what an
 * earlier run left in `--folder` is not run again.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { writeSection } from "../page-section.ts";
import { type ProofRun, proofPage } from "./proof-page.ts";

const { values } = parseArgs({
  options: {
    stores: { type: "string", default: "sqlite,postgres,mysql,redis" },
    duration: { type: "string", default: "60s" },
    jobs: { type: "string", default: "6000" },
    nodes: { type: "string", default: "4" },
    lease: { type: "string", default: "2s" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    /** Where the figures, and a page for each store, are kept. */
    folder: { type: "string" },
    reuse: { type: "boolean", default: false },
    write: { type: "string" },
    /** What a reader of the page must know besides. */
    note: { type: "string" },
  },
});

/** How many stores at a time: more would measure the machine. */
const together = 2;
const folder = values.folder ?? mkdtempSync(join(tmpdir(), "escapement-proof-"));

const under = new Set<ChildProcess>();

interface Outcome {
  readonly store: string;
  readonly code: number | null;
  readonly text: string;
}

function flagsOf(store: string): string[] {
  const { nodes, jobs, duration, lease, seed } = values;
  const where = store === "sqlite" ? [] : ["--testbed", store];
  const size = ["--nodes", nodes, "--jobs", jobs, "--duration", duration, "--lease", lease, "--seed", seed];
  return [...where, "--delivery", "all", "--faults", "all", ...size];
}

function read(store: string): ProofRun["data"] {
  return JSON.parse(readFileSync(join(folder, `${store}.json`), "utf8"));
}

/** In a process of its own, so that one store's trouble is not another's. */
async function run(store: string): Promise<Outcome> {
  if (values.reuse && existsSync(join(folder, `${store}.json`)))
    return { store, code: read(store).valid ? 0 : 1, text: `${store}: as it was` };
  const file = (kind: string): string => join(folder, `${store}.${kind}`);
  const files = ["--json", file("json"), "--report", file("html"), "--history", file("history")];
  const main = join(import.meta.dirname, "on-testbed.ts");
  const child = spawn(process.execPath, [main, ...flagsOf(store), ...files], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  under.add(child);
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk;
  });
  return new Promise((resolve) => {
    child.once("close", (code) => {
      under.delete(child);
      resolve({ store, code, text });
    });
  });
}

async function runAll(stores: readonly string[]): Promise<Outcome[]> {
  const left = [...stores];
  const done: Outcome[] = [];
  const work = async (): Promise<void> => {
    for (let store = left.shift(); store !== undefined; store = left.shift()) {
      const outcome = await run(store);
      console.log(outcome.text.trimEnd() || `${store}: it said nothing, and ended with ${outcome.code}`);
      done.push(outcome);
    }
  };
  await Promise.all(Array.from({ length: together }, work));
  return stores.flatMap((store) => done.filter((one) => one.store === store));
}

// Whoever stops the proof stops what it has under way, and nothing is measured after that.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    for (const child of under) child.kill(signal);
    process.exit(1);
  });
}
mkdirSync(folder, { recursive: true });
const outcomes = await runAll(values.stores.split(","));
const failed = outcomes.filter(({ code }) => code !== 0).map(({ store }) => store);
console.log(
  `${outcomes.length - failed.length} of ${outcomes.length} stores kept every promise${failed.length > 0 ? `; not ${failed.join(", ")}` : ""}; figures and pages in ${folder}`,
);
if (failed.length > 0) process.exitCode = 1;
// Whatever was found: a page that is written only when all is well would be a choice of runs, not a measurement.
if (values.write !== undefined) {
  const measured = outcomes.filter(({ store }) => existsSync(join(folder, `${store}.json`)));
  const runs = measured.map(({ store }): ProofRun => {
    return { command: `npm run verify -- ${flagsOf(store).join(" ")}`, data: read(store) };
  });
  const { duration, jobs, nodes, lease, seed, write, stores } = values;
  const command = `npm run proof -- --stores ${stores} --duration ${duration} --jobs ${jobs} --nodes ${nodes} --lease ${lease} --seed ${seed} --write ${write}`;
  const day = new Date().toISOString().slice(0, 10);
  writeSection(write, "Verify", proofPage(runs, command, day, values.note ?? null));
}
