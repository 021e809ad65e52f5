import { type ChildProcess, fork } from "node:child_process";
import { parseDuration } from "../../duration.ts";
import { EscapementError } from "../../errors.ts";
import { siblingModule } from "../../runtime/sibling-module.ts";
import type { StartFlags } from "../commands/start.ts";

/** What a process of the app must do. It is sent as a message: an address of a store may have a login, and arguments can be seen by others. */
export interface Order {
  readonly flags: StartFlags;
  readonly config: string;
  readonly port: number;
  /** If the port is taken, another will do. */
  readonly mayMove: boolean;
  /** The address that was printed already. */
  readonly announced: string | null;
}

export type Report =
  | { readonly type: "running"; readonly url: string }
  | {
      readonly type: "broken";
      readonly error: { readonly code: string; readonly message: string };
      /** No change of a source can help. */
      readonly isFinal: boolean;
    };

/** Beyond the time that jobs have: what a healthy process needs to load, to write outcomes and to close the store. */
const graceMs = 10_000;

/** One process of the app. */
export class AppChild {
  readonly #process: ChildProcess;
  readonly #patienceMs: number;
  readonly #ended: Promise<unknown>;
  #isOver = false;
  #isExpected = false;

  /** @param onEnd called when it ends without being asked to, and without a report that says why. */
  constructor(order: Order, onReport: (report: Report) => void, onEnd: (how: string) => void) {
    this.#patienceMs = parseDuration(order.flags.timeout, "--timeout") + graceMs;
    this.#process = fork(entry(), {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      detached: process.platform !== "win32",
    });
    this.#process.on("message", (report: Report) => {
      if (report.type === "broken") this.#isExpected = true;
      onReport(report);
    });
    this.#ended = new Promise((resolve) => {
      const end = (how: string): void => {
        this.#isOver = true;
        if (!this.#isExpected) onEnd(how);
        resolve(null);
      };
      this.#process.once("exit", (code, signal) => {
        const how = signal ?? `exit code ${code}`;
        // What it reported last may not have been read yet.
        if (this.#process.connected) this.#process.once("disconnect", () => end(how));
        else end(how);
      });
      this.#process.on("error", (error) => this.#process.pid === undefined && end(error.message));
    });
    this.#process.send(order, () => {});
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Lets it finish its jobs or give them back. One that cannot, since its loop is blocked, is killed; its leases run out.
   *
   * @returns whether it was killed.
   */
  async stop(): Promise<boolean> {
    if (this.#isOver) return false;
    this.#isExpected = true;
    if (this.#process.connected) this.#process.disconnect();
    let wasKilled = false;
    const deadline = setTimeout(() => {
      wasKilled = true;
      this.kill();
    }, this.#patienceMs);
    await this.#ended;
    clearTimeout(deadline);
    return wasKilled;
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }
}

function entry(): URL {
  const file = siblingModule(import.meta.url, "app-process");
  if (file !== null) return file;
  throw new EscapementError(
    "invalid-option",
    "escapement dev needs the files of its package; do not bundle it",
  );
}
