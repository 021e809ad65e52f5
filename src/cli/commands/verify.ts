import { writeFileSync } from "node:fs";
import { Command } from "commander";
import { parseDuration } from "../../duration.ts";
import { EscapementError } from "../../errors.ts";
import { type Delivery, deliveries } from "../../job.ts";
import { checkInteger, checkOneOf } from "../../options.ts";
import type { possibleFaults } from "../../proof/possible-faults.ts";
import type { BrokerOptions } from "../../proof/relay/stage.ts";
import type { Progress, VerifyOptions } from "../../proof/run.ts";
import { findConfigFile } from "../../runtime/config-file.ts";
import { type FaultKind, faultKinds, verifyReportFile, writeVerifyReport } from "../../verify-report.ts";
import { print } from "../output.ts";

interface VerifyFlags {
  readonly store?: string;
  readonly to?: string;
  readonly delivery: string;
  readonly faults: string;
  readonly nodes: string;
  readonly jobs: string;
  readonly duration: string;
  readonly lease: string;
  readonly concurrency: string;
  readonly seed?: string;
  readonly json?: boolean;
  readonly out?: string;
  readonly report?: string;
  readonly history?: string;
}

const pollMs = 100;

/** A server that was started for this run alone: only such a server is restarted. */
export interface OwnServer {
  readonly url: string;
  readonly restart: NonNullable<VerifyOptions["restart"]>;
}

/** @param broker one that was started for this run alone, too. */
export function verifyCommand(server: OwnServer | null = null, broker: BrokerOptions | null = null): Command {
  return new Command("verify")
    .description("break real processes on a store, and check that every guarantee was kept")
    .option(
      "--store <url>",
      "the store, or env:NAME; its jobs are kept in a separate namespace (default: a SQLite file)",
    )
    .option(
      "--to <url>",
      "publish jobs there (redis:, nats:, kafka:, or http for its own receiver), with consumers behind it, instead of running them in the nodes",
    )
    .option("--delivery <which>", `all, or any of ${deliveries.join(", ")}`, "all")
    .option(
      "--faults <which>",
      `all that store and broker allow, none, or any of ${faultKinds.join(",")}`,
      "all",
    )
    .option("--nodes <count>", "how many processes", "4")
    .option("--jobs <count>", "how many jobs, in addition to those of schedules", "20000")
    .option("--duration <time>", "how long jobs are enqueued and faults happen", "60s")
    .option("--lease <time>", "how long a claim holds without renewal", "2s")
    .option("--concurrency <count>", "how many handlers a process runs at once", "10")
    .option("--seed <number>", "repeats the workload and the faults of another run (default: a new one)")
    .option("--json", "answer in JSON: every violation and all figures")
    .option("--out <file>", "also writes that to this file")
    .option("--report <file>", "writes a page with a timeline to this file")
    .option("--history <file>", "writes the raw history of the run to this file")
    .action(async (flags: VerifyFlags) => {
      // Loaded on demand: no other command needs it.
      const { possibleFaults } = await import("../../proof/possible-faults.ts");
      const { verify } = await import("../../proof/run.ts");
      const { reportData, reportLines, reportSummary } = await import("../../proof/report.ts");
      const { reportPage } = await import("../../proof/report-page.ts");
      const options = resolve(flags, server, broker, possibleFaults);
      const result = await verify({ ...options, onProgress: showProgress });
      if (process.stderr.isTTY) process.stderr.write("\r\u001b[K");
      const data = reportData(options, result);
      print(flags.json, data, () => reportLines(options, result));
      if (flags.out !== undefined) writeFileSync(flags.out, `${JSON.stringify(data, null, 2)}\n`);
      if (flags.report !== undefined) writeFileSync(flags.report, reportPage(options, result));
      if (flags.history !== undefined) writeFileSync(flags.history, JSON.stringify(result));
      // In a project, the last one is kept for its dashboard.
      if (findConfigFile(process.cwd()) !== null)
        writeVerifyReport(verifyReportFile, reportSummary(options, result, new Date()));
      if (!result.verdict.valid) process.exitCode = 1;
    });
}

function resolve(
  flags: VerifyFlags,
  server: OwnServer | null,
  broker: BrokerOptions | null,
  possible: typeof possibleFaults,
): VerifyOptions {
  const number = (text: string, min: number, max: number, name: string): number =>
    checkInteger(/^\d+$/.test(text) ? Number(text) : text, min, max, name);
  const seed = flags.seed ?? String(Math.floor(Math.random() * 2 ** 31));
  const store = addressOf(flags.store, "--store") ?? server?.url ?? null;
  const restart = flags.store === undefined ? server?.restart : undefined;
  const to = flags.to === undefined ? broker : { url: addressOf(flags.to, "--to") };
  const where = { store, to, ...(restart === undefined ? {} : { restart }) };
  return {
    ...where,
    deliveries:
      flags.delivery === "all" ? deliveries : listOf<Delivery>(flags.delivery, deliveries, "delivery"),
    faults: faultsOf(flags.faults, possible(where)),
    nodes: number(flags.nodes, 1, 64, "nodes"),
    jobs: number(flags.jobs, 1, 10_000_000, "jobs"),
    durationMs: atLeast(parseDuration(flags.duration, "duration"), 1_000, "duration"),
    leaseMs: atLeast(parseDuration(flags.lease, "lease"), 500, "lease"),
    concurrency: number(flags.concurrency, 1, 1_000, "concurrency"),
    seed: number(seed, 0, Number.MAX_SAFE_INTEGER, "seed"),
    pollMs,
  };
}

/** `env:NAME` keeps a password out of the arguments, which every user of the machine can see. */
function addressOf<T extends string | undefined>(given: T, flag: string): T | string {
  if (given?.startsWith("env:") !== true) return given;
  const found = process.env[given.slice("env:".length)];
  if (found !== undefined && found !== "") return found;
  throw new EscapementError(
    "invalid-option",
    `expected ${flag} ${given} to name an environment variable that is set`,
  );
}

const whyNot: Readonly<Partial<Record<FaultKind, string>>> = {
  network: "this store cannot be proxied",
  restart: "only a server that the test bed started is restarted",
  broker: "there is no broker (--to), or it cannot be proxied",
  both: "store and broker cannot both be proxied",
  "broker-restart": "only a broker that the test bed started is restarted",
  publish: "nothing is published without --to",
};

function faultsOf(text: string, possible: readonly FaultKind[]): readonly FaultKind[] {
  if (text === "none") return [];
  if (text === "all") return possible;
  const wanted = listOf(text, faultKinds, "faults");
  const missing = wanted.find((kind) => !possible.includes(kind));
  if (missing === undefined) return wanted;
  throw new EscapementError(
    "invalid-option",
    `expected faults without ${missing}, got ${text}: ${whyNot[missing] ?? "it cannot be done here"}`,
  );
}

function listOf<T extends string>(text: string, known: readonly T[], name: string): T[] {
  return [...new Set(text.split(",").map((one) => checkOneOf(one.trim(), known, name)))];
}

function atLeast(ms: number, leastMs: number, name: string): number {
  if (ms >= leastMs) return ms;
  throw new EscapementError("invalid-option", `expected ${name} to be at least ${leastMs} ms, got ${ms}`);
}

/** One line that is overwritten on a screen; without a screen, a line from time to time. */
function showProgress({ phase, elapsedMs, enqueued, unfinished, faults }: Progress): void {
  const seconds = Math.round(elapsedMs / 1_000);
  const text = `${phase} ${seconds} s: ${enqueued} jobs enqueued, ${unfinished} to do, ${faults} faults`;
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
  else if (seconds % 5 === 0) process.stderr.write(`${text}\n`);
}
