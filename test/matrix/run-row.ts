import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compiled } from "./compile.ts";
import type { Row } from "./rows.ts";

const root = join(import.meta.dirname, "../..");
const logs = join(root, ".escapement/matrix");
/** A row that takes longer has failed. */
const mostMinutes = 20;

export interface RowResult {
  readonly row: Row;
  readonly outcome: "passed" | "failed" | "skipped";
  /** The versions of the servers that were started. */
  readonly servers: readonly string[];
  readonly passed: number;
  readonly failed: number;
  readonly seconds: number;
  /** Why it was skipped, or where to read on. */
  readonly note: string;
}

/** Runs the tests of a row, and keeps all that they print in a file. */
export async function runRow(row: Row, { isShort }: { isShort: boolean }): Promise<RowResult> {
  const begunAt = Date.now();
  const base = { row, servers: [], passed: 0, failed: 0 };
  const seconds = (): number => Math.round((Date.now() - begunAt) / 1_000);
  let prepared: Awaited<ReturnType<Row["prepare"]>>;
  try {
    prepared = await row.prepare();
  } catch (error) {
    return { ...base, outcome: "skipped", seconds: seconds(), note: (error as Error).message };
  }
  const files = [...row.contract, ...row.processes];
  const { variants } = row;
  const skipped = !isShort || variants === undefined ? [] : [`--test-skip-pattern=/${variants.source}/`];
  const command =
    prepared.node === undefined
      ? [process.execPath, "scripts/run.mjs", "--test", ...skipped, ...files]
      : [prepared.node, "--test", "--test-reporter=spec", ...files.map(compiled)];
  const seeds = isShort ? { ESCAPEMENT_SEEDS: "4" } : {};
  const { code, output } = await run(command, { ...seeds, ...prepared.env });
  mkdirSync(logs, { recursive: true });
  const log = join(logs, `${row.name.replaceAll(/[^\w.-]+/g, "-")}.log`);
  writeFileSync(log, output);
  const [passed, failed] = [numberOf(output, "pass"), numberOf(output, "fail")];
  const isGood = code === 0 && passed > 0 && output.includes(prepared.proof);
  const servers = [...output.matchAll(/^testbed: (\w+ [\d.]+\S*) \(/gm)].map(([, text = ""]) => text);
  const ended = code === null ? `it was ended by a signal, or after ${mostMinutes} minutes\n` : "";
  const note = isGood
    ? ""
    : `${firstFailures(output)}${ended}expected "${prepared.proof}", and no failures, in ${log}`;
  return { row, outcome: isGood ? "passed" : "failed", servers, passed, failed, seconds: seconds(), note };
}

function numberOf(output: string, what: string): number {
  return Number(new RegExp(`^ℹ ${what} (\\d+)$`, "m").exec(output)?.[1] ?? 0);
}

function firstFailures(output: string): string {
  const failures = output.split(/^✖ failing tests:$/m)[1] ?? output.slice(-2_000);
  return `${failures.trim().slice(0, 2_000)}\n`;
}

function run(
  [file = "", ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ code: number | null; output: string }> {
  // Servers and test runs that this one was given are not for its rows.
  const own = Object.entries(process.env).filter(([name]) => !/^(ESCAPEMENT_TEST|NODE_TEST)/.test(name));
  const child = spawn(file, args, {
    cwd: root,
    env: { ...Object.fromEntries(own), ...env },
    timeout: mostMinutes * 60_000,
  });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk) => chunks.push(chunk));
  child.stderr.on("data", (chunk) => chunks.push(chunk));
  const stop = (): void => void child.kill("SIGTERM");
  process.once("SIGTERM", stop).once("SIGINT", stop);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      process.off("SIGTERM", stop).off("SIGINT", stop);
      resolve({ code, output: Buffer.concat(chunks).toString() });
    });
  });
}
