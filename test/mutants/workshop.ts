import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Mutant } from "./mutant.ts";

export const root = join(import.meta.dirname, "../..");

/** How long tests may take without a mutant. */
const patienceMs = 600_000;
/** A mutant that hangs its tests is noticed, too: this many times what they take without one. */
const patience = 4;
/** Never less than this: one that runs beside may slow it down. */
const minPatienceMs = 120_000;
/** Fewer tests than this cannot show that the mutant is at fault and not its grammar. */
const fewTests = 5;

export interface Verdict {
  /** `broken`: everything failed, so the mutant is no program. */
  readonly kind: "killed" | "survived" | "broken";
  /** The first test that failed, or why there is none. */
  readonly by: string;
  readonly seconds: number;
}

/** A copy of the tree in which one mutant at a time is tested. The tree itself is never touched. */
export class Workshop implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "escapement-mutants-"));
  #end: () => void = () => {};

  constructor() {
    process.once("exit", () => this[Symbol.dispose]());
    const left = new Set(["node_modules", ".git", "dist", "coverage"]);
    cpSync(root, this.#folder, { recursive: true, filter: (path) => !left.has(basename(path)) });
    symlinkSync(join(root, "node_modules"), join(this.#folder, "node_modules"));
  }

  /** Runs tests without any mutant: they must pass, or nothing is shown by a failure. */
  tryOriginal(tests: Pick<Mutant, "tests" | "pattern">): Promise<Verdict> {
    return this.#run(tests, patienceMs);
  }

  /** @param seconds what its tests take without it. */
  async try(mutant: Mutant, seconds: number): Promise<Verdict> {
    const path = join(this.#folder, mutant.file);
    const original = readFileSync(path, "utf8");
    writeFileSync(path, mutate(original, mutant));
    try {
      return await this.#run(mutant, Math.max(minPatienceMs, patience * seconds * 1_000));
    } finally {
      writeFileSync(path, original);
    }
  }

  async #run({ tests, pattern }: Pick<Mutant, "tests" | "pattern">, timeoutMs: number): Promise<Verdict> {
    const since = performance.now();
    const options = pattern === undefined ? [] : [`--test-name-pattern=${pattern}`];
    const args = ["--test", "--test-reporter=tap", "--test-concurrency=1", ...options, ...tests];
    // A group of its own, so that whatever a mutant has started ends with it.
    const child = spawn(process.execPath, args, {
      cwd: this.#folder,
      detached: true,
      stdio: ["ignore", "pipe", "ignore"],
    });
    let output = "";
    child.stdout.on("data", (data) => {
      output += data;
    });
    this.#end = () => void (child.pid !== undefined && process.kill(-child.pid, "SIGKILL"));
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      this.#end();
    }, timeoutMs);
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    this.#end = () => {};
    clearTimeout(timer);
    const seconds = Math.round((performance.now() - since) / 100) / 10;
    return { ...(isLate ? hung : judge(code, output)), seconds };
  }

  [Symbol.dispose](): void {
    this.#end();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const hung = { kind: "killed", by: "it does not end" } as const;

function judge(code: number | null, output: string): Pick<Verdict, "kind" | "by"> {
  if (code === 0) return { kind: "survived", by: `${countOf(output, "pass")} tests passed` };
  const [passed, failed] = [countOf(output, "pass"), countOf(output, "fail")];
  // The deepest comes first: a test, then the groups around it.
  const first = /^\s*not ok \d+ - (.*)$/m.exec(output)?.[1] ?? `exit code ${code}`;
  return { kind: passed === 0 && failed >= fewTests ? "broken" : "killed", by: first };
}

function countOf(output: string, what: "pass" | "fail"): number {
  return Number(new RegExp(`^# ${what} (\\d+)$`, "m").exec(output)?.[1] ?? 0);
}

/** How often the text that a mutant replaces stands in its file; anything but once needs a person. */
export function occurrences({ file, find }: Mutant): number {
  return readFileSync(join(root, file), "utf8").split(find).length - 1;
}

function mutate(source: string, { find, replace }: Mutant): string {
  return source.replace(find, () => replace);
}
