/**
 * `npm run proof -- [--duration 60s] [--jobs 6000] [--nodes 4] [--lease 2s] [--seed N] [--stores sqlite,postgres,mysql,redis]
 * [--relay postgres:kafka,redis:nats,mysql:redis,sqlite:http] [--write docs/PROOF.md]`: verify on every store, then the relay from stores to
 * brokers, all guarantees, all faults. Fails when a promise was broken. `none` leaves one of the two lists out. With
 * `--reuse`, what an earlier run left in `--folder` is not run again.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { writeSection } from "../../page-section.ts";
import { type ProofRun, proofPage } from "./proof-page.ts";
import { relayProof } from "./relay-proof.ts";

const { values } = parseArgs({
  options: {
    stores: { type: "string", default: "sqlite,postgres,mysql,redis" },
    /** From which store to which broker. */
    relay: { type: "string", default: "postgres:kafka,redis:nats,mysql:redis,sqlite:http" },
    duration: { type: "string", default: "60s" },
    jobs: { type: "string", default: "6000" },
    nodes: { type: "string", default: "4" },
    lease: { type: "string", default: "2s" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    /** Where the figures, and a page for each store, are kept. */
    folder: { type: "string" },
    reuse: { type: "boolean", default: false },
    write: { type: "string" },
  },
});

/** How many runs at a time: more would measure the machine. Those with a broker have twice as many processes. */
const together = { local: 2, routed: 1 };
const folder = values.folder ?? mkdtempSync(join(tmpdir(), "escapement-proof-"));

const under = new Set<ChildProcess>();

interface Trial {
  readonly name: string;
  readonly store: string;
  /** Null: handlers run in the nodes. */
  readonly to: string | null;
}

interface Outcome {
  readonly trial: Trial;
  readonly code: number | null;
  readonly text: string;
}

function listOf(text: string): string[] {
  return text === "none" ? [] : text.split(",");
}

const trials: readonly Trial[] = [
  ...listOf(values.stores).map((store) => ({ name: store, store, to: null })),
  ...listOf(values.relay).map((pair) => {
    const [store = "", to = ""] = pair.split(":");
    return { name: `${store}-to-${to}`, store, to };
  }),
];

function flagsOf({ store, to }: Trial): string[] {
  const { nodes, jobs, duration, lease, seed } = values;
  const where = [...(store === "sqlite" ? [] : ["--testbed", store]), ...(to === null ? [] : ["--to", to])];
  const size = ["--nodes", nodes, "--jobs", jobs, "--duration", duration, "--lease", lease, "--seed", seed];
  return [...where, "--delivery", "all", "--faults", "all", ...size];
}

function read({ name }: Trial): ProofRun["data"] {
  return JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
}

/** In a process of its own, so that one run's trouble is not another's. */
async function run(trial: Trial): Promise<Outcome> {
  const { name } = trial;
  if (values.reuse && existsSync(join(folder, `${name}.json`)))
    return { trial, code: read(trial).valid ? 0 : 1, text: `${name}: as it was` };
  const file = (kind: string): string => join(folder, `${name}.${kind}`);
  const files = ["--out", file("json"), "--report", file("html"), "--history", file("history")];
  const main = join(import.meta.dirname, "on-testbed.ts");
  const child = spawn(process.execPath, [main, ...flagsOf(trial), ...files], {
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
      resolve({ trial, code, text });
    });
  });
}

async function runAll(): Promise<Outcome[]> {
  const done: Outcome[] = [];
  const work = async (left: Trial[]): Promise<void> => {
    for (let trial = left.shift(); trial !== undefined; trial = left.shift()) {
      const outcome = await run(trial);
      console.log(outcome.text.trimEnd() || `${trial.name}: it said nothing, and ended with ${outcome.code}`);
      done.push(outcome);
    }
  };
  const local = trials.filter(({ to }) => to === null);
  await Promise.all(Array.from({ length: together.local }, () => work(local)));
  const routed = trials.filter(({ to }) => to !== null);
  await Promise.all(Array.from({ length: together.routed }, () => work(routed)));
  return trials.flatMap((trial) => done.filter((one) => one.trial === trial));
}

// Whoever stops the proof stops what it has under way, and nothing is measured after that.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    for (const child of under) child.kill(signal);
    process.exit(1);
  });
}
mkdirSync(folder, { recursive: true });
const outcomes = await runAll();
const failed = outcomes.filter(({ code }) => code !== 0).map(({ trial }) => trial.name);
console.log(
  `${outcomes.length - failed.length} of ${outcomes.length} runs kept every promise${failed.length > 0 ? `; not ${failed.join(", ")}` : ""}; figures and pages in ${folder}`,
);
if (failed.length > 0) process.exitCode = 1;
// Whatever was found: a page that is written only when all is well would be a choice of runs, not a measurement.
if (values.write !== undefined) {
  const runsOf = (isRouted: boolean): ProofRun[] =>
    trials
      .filter(({ name, to }) => (to !== null) === isRouted && existsSync(join(folder, `${name}.json`)))
      .map((trial) => ({ command: `npm run verify -- ${flagsOf(trial).join(" ")}`, data: read(trial) }));
  const [local, routed] = [runsOf(false), runsOf(true)];
  const { duration, jobs, nodes, lease, seed, write, stores, relay } = values;
  const command = (lists: string): string =>
    `npm run proof -- ${lists} --duration ${duration} --jobs ${jobs} --nodes ${nodes} --lease ${lease} --seed ${seed} --write ${write}`;
  const day = new Date().toISOString().slice(0, 10);
  if (local.length > 0)
    writeSection(write, "Verify", proofPage(local, command(`--stores ${stores} --relay none`), day));
  if (routed.length > 0)
    writeSection(write, "Relay", relayProof(routed, command(`--stores none --relay ${relay}`), day));
}
