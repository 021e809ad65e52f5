import { type ChildProcess, fork } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createEscapement, defineJob, type Escapement } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { newFolder } from "../behaviour/stores.ts";
import type { NodePlan } from "./node.ts";

/** A line that a node's handler wrote. */
export interface LogLine {
  readonly what: string;
  readonly id: string;
  readonly token: number;
  readonly pid: number;
  readonly atMs: number;
}

export type Work = {
  readonly ms: number;
  readonly how: "wait" | "block";
  /** Ends only when so many processes have started a job. */
  readonly together?: number;
};

/** Real processes on one database, and a client that only asks. Whatever it started, it ends. */
export class Fleet implements AsyncDisposable {
  readonly atMostOnce = defineJob<Work>({ name: "at-most-once", delivery: "at-most-once" });
  readonly atLeastOnce = defineJob<Work>({ name: "at-least-once" });
  readonly client: Escapement;
  readonly store: string;
  readonly #plan: NodePlan;
  readonly #children = new Set<ChildProcess>();

  /** @param options the store is a URL; a SQLite file of its own unless it is given. */
  constructor(options: {
    lease: number;
    concurrency?: number;
    poll?: number;
    store?: string;
    acceptWeakDurability?: boolean;
  }) {
    const folder = newFolder();
    const store = options.store ?? `sqlite:${join(folder, "jobs.db")}`;
    this.#plan = { log: join(folder, "log"), concurrency: 10, ...options, store };
    this.store = store;
    this.client = createEscapement({ store, log: silentLogger });
  }

  /** Starts a node and waits until it is ready. */
  async start(): Promise<ChildProcess> {
    const child = fork(join(import.meta.dirname, "node.ts"), [JSON.stringify(this.#plan)], { execArgv: [] });
    this.#children.add(child);
    await new Promise<void>((resolve, reject) => {
      child.once("message", () => resolve());
      child.once("exit", (code) => reject(new Error(`a node ended before it was ready (${code})`)));
    });
    return child;
  }

  /**
   * Stops a node on SQLite as the system would, at a moment when it does not hold the file: one that is stopped in the middle of a write
   * keeps everybody out until it goes on, which is a fault of another kind.
   */
  async pause(child: ChildProcess): Promise<void> {
    const database = new DatabaseSync(this.store.slice("sqlite:".length), { timeout: 50 });
    try {
      await this.until("it was stopped outside of a write", () => {
        child.kill("SIGSTOP");
        try {
          database.exec("begin immediate; rollback");
          return true;
        } catch {
          child.kill("SIGCONT");
          return false;
        }
      });
    } finally {
      database.close();
    }
  }

  get lines(): LogLine[] {
    if (!existsSync(this.#plan.log)) return [];
    return readFileSync(this.#plan.log, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => {
        const [what = "", id = "", token, pid, atMs] = line.split(" ");
        return { what, id, token: Number(token), pid: Number(pid), atMs: Number(atMs) };
      });
  }

  starts(id?: string): LogLine[] {
    return this.lines.filter((line) => line.what === "start" && (id === undefined || line.id === id));
  }

  /** Waits for something to become true; a deadline, not a sleep. */
  async until(what: string, condition: () => boolean | Promise<boolean>, timeoutMs = 120_000): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    while (!(await condition())) {
      if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain until ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async state(id: string): Promise<string | undefined> {
    return (await this.client.get(id))?.state;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#children].map((child) => end(child)));
    await this.client.stop();
  }
}

/** Resolves when a child has ended; SIGKILL also ends one that is stopped. */
export function end(child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode);
  return new Promise((resolve) => {
    child.once("exit", resolve);
    child.kill(signal);
  });
}
