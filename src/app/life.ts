import type { Client } from "../client/client.ts";
import type { Connection } from "../client/connection.ts";
import { EscapementError } from "../errors.ts";
import type { Emit } from "../events.ts";
import type { Observation } from "../observe/observation.ts";
import type { Settings } from "../settings.ts";
import type { CancelReasons } from "./cancel-reasons.ts";
import type { HistoryWriter } from "./history-writer.ts";
import type { Node, StartOptions } from "./node.ts";
import { findScheduleFile, ScheduleFile } from "./schedule-file.ts";
import type { Schedules } from "./schedules.ts";

export interface LifeParts {
  readonly settings: Settings;
  readonly connection: Connection;
  readonly client: Client;
  readonly schedules: Schedules;
  readonly cancelReasons: CancelReasons;
  readonly observation: Observation | null;
  readonly history: HistoryWriter;
  readonly emit: Emit;
  makeNode(options: StartOptions): Node;
}

/** An app's life: started at most once, stopped once, and of no use after that. */
export class Life {
  readonly #parts: LifeParts;
  #node: Node | null = null;
  #scheduleFile: ScheduleFile | null = null;
  #starting: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;

  constructor(parts: LifeParts) {
    this.#parts = parts;
  }

  /** Null before the start. */
  get node(): Node | null {
    return this.#node;
  }

  get isStopping(): boolean {
    return this.#stopping !== null;
  }

  assertUsable(): void {
    if (this.#stopping !== null) {
      throw new EscapementError("stopped", "this app was stopped; create a new one to continue");
    }
  }

  /** For what must be known before the first handler starts. */
  assertNotStarted(advice: string): void {
    this.assertUsable();
    if (this.#node === null) return;
    throw new EscapementError("already-started", `this app is already started; ${advice}`);
  }

  async start(options: StartOptions): Promise<void> {
    this.assertUsable();
    if (this.#node !== null) {
      throw new EscapementError(
        "already-started",
        "this app is already started; call start once, with every role and queue it needs",
      );
    }
    const node = this.#parts.makeNode(options);
    this.#node = node;
    this.#starting = this.#begin(node, options);
    try {
      await this.#starting;
    } catch (error) {
      this.#node = null;
      await this.#scheduleFile?.stop();
      await this.#parts.observation?.stop();
      throw error;
    }
  }

  async #begin(node: Node, { roles }: StartOptions): Promise<void> {
    const { connection, schedules, settings, observation, emit } = this.#parts;
    const store = await connection.store();
    const path = roles === undefined || roles.includes("planner") ? findScheduleFile(process.cwd()) : null;
    this.#scheduleFile = path === null ? null : new ScheduleFile(path, schedules, emit);
    await this.#scheduleFile?.start();
    if (settings.metrics !== null) await observation?.start(settings.metrics);
    await node.start(store);
  }

  /** Calling it again waits for the same end. */
  stop(timeoutMs: number): Promise<void> {
    this.#stopping ??= this.#stop(timeoutMs);
    return this.#stopping;
  }

  async #stop(timeoutMs: number): Promise<void> {
    const { client, cancelReasons, observation, history, connection } = this.#parts;
    await client.settled();
    // A start in progress ends first: what is half started cannot be stopped. The caller of start gets its failure.
    await this.#starting?.catch(() => {});
    await this.#scheduleFile?.stop();
    await this.#node?.stop(timeoutMs);
    // What the last handlers enqueued without waiting for it.
    await client.settled();
    await cancelReasons.settled();
    await history.stop();
    await observation?.stop();
    await connection.close();
  }
}
