import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";
import { sleep, systemClock } from "../clock.ts";
import { EscapementError } from "../errors.ts";
import { siblingModule } from "../runtime/sibling-module.ts";
import type { FaultWindow } from "./history.ts";
import { type MemberPlan, type NodeOrder, type NodeReport, planVariable } from "./node-plan.ts";

/** Which program a process runs. */
export type Program = "node" | "relay/node" | "relay/consumer";

const startWithinMs = 30_000;
const stopWithinMs = 10_000;
const endingSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const keptErrorBytes = 4_000;

/** One process of the fleet. */
export class NodeProcess {
  readonly name: string;
  readonly slot: number;
  readonly #child: ChildProcess;
  #errors = "";
  #ready = false;
  readonly exited: Promise<void>;

  constructor(slot: number, program: Program, plan: MemberPlan) {
    this.name = plan.name;
    this.slot = slot;
    const file = siblingModule(import.meta.url, program);
    assert(
      file !== null,
      `expected the program ${program} beside the verifier; it does not run from a bundle`,
    );
    this.#child = fork(fileURLToPath(file), [], {
      execArgv: [],
      // Not as an argument: every user of the machine sees those, and the addresses in it may carry passwords.
      env: { ...process.env, [planVariable]: JSON.stringify(plan) },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      this.#errors = `${this.#errors}${chunk}`.slice(-keptErrorBytes);
    });
    this.exited = new Promise((resolve) => this.#child.once("exit", () => resolve()));
    void this.hear("ready", startWithinMs).then((report) => {
      this.#ready = report !== null;
    });
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get isReady(): boolean {
    return this.#ready && this.isAlive;
  }

  /** It ended by itself, which no node may. */
  get hasFailed(): boolean {
    return this.#child.exitCode !== null && this.#child.exitCode !== 0;
  }

  get errors(): string {
    return this.#errors;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  order(order: NodeOrder): void {
    if (this.isAlive && this.#child.connected) this.#child.send(order, () => {});
  }

  /** The next report of a kind, or null when the process ends or the time is up before. */
  hear<K extends NodeReport["kind"]>(
    kind: K,
    withinMs: number,
  ): Promise<Extract<NodeReport, { kind: K }> | null> {
    return new Promise((resolve) => {
      const done = (report: Extract<NodeReport, { kind: K }> | null): void => {
        this.#child.off("message", listen);
        cancel();
        resolve(report);
      };
      const listen = (report: NodeReport): void => {
        if (report.kind === kind) done(report as Extract<NodeReport, { kind: K }>);
      };
      const cancel = systemClock.after(withinMs, () => done(null));
      this.#child.on("message", listen);
      void this.exited.then(() => done(null));
    });
  }
}

export interface FleetParts {
  readonly size: number;
  readonly program: Program;
  /** Before the number of each process. @default "" */
  readonly prefix?: string;
  planFor(name: string): MemberPlan;
}

/** Processes of one kind, always as many as there shall be: one that was killed is replaced. */
export class Fleet implements AsyncDisposable {
  readonly #parts: FleetParts;
  readonly #nodes: (NodeProcess | null)[];
  #started = 0;
  #stopping = false;
  readonly #failed: NodeProcess[] = [];
  readonly #replacing = new Set<Promise<void>>();

  constructor(parts: FleetParts) {
    this.#parts = parts;
    this.#nodes = Array.from({ length: parts.size }, () => null);
    for (const signal of endingSignals) process.once(signal, this.#abandon);
  }

  get alive(): NodeProcess[] {
    return this.#nodes.filter((node): node is NodeProcess => node?.isAlive === true);
  }

  get ready(): NodeProcess[] {
    return this.alive.filter((node) => node.isReady);
  }

  get started(): number {
    return this.#started;
  }

  async start(): Promise<void> {
    await Promise.all(this.#nodes.map((_, slot) => this.#launch(slot)));
    this.assertSound();
  }

  /** Nodes end when they are told or killed, never by themselves. */
  assertSound(): void {
    const [first] = this.#failed;
    if (first === undefined) return;
    throw new EscapementError(
      "job-failed",
      `node ${first.name} ended by itself: ${first.errors.trim() || "it said nothing"}`,
    );
  }

  async kill(node: NodeProcess): Promise<FaultWindow> {
    const fromMs = systemClock.monotonic();
    node.signal("SIGKILL");
    await node.exited;
    return { kind: "kill", node: node.name, fromMs, untilMs: systemClock.monotonic(), detail: "at random" };
  }

  /** Lets all of them end what they do. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#replacing);
    for (const node of this.alive) node.order({ kind: "stop" });
    await Promise.all(
      this.alive.map(async (node) => {
        await Promise.race([node.exited, sleep(systemClock, stopWithinMs)]);
        if (node.isAlive) await this.kill(node);
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const signal of endingSignals) process.off(signal, this.#abandon);
    this.#stopping = true;
    await Promise.all(this.alive.map((node) => this.kill(node)));
    await Promise.all(this.#replacing);
  }

  /** A node that is stopped at that moment would never hear that the run has ended. */
  readonly #abandon = (signal: NodeJS.Signals): void => {
    this.#stopping = true;
    for (const node of this.alive) node.signal("SIGKILL");
    process.exit(128 + constants.signals[signal]);
  };

  async #launch(slot: number): Promise<void> {
    this.#started += 1;
    const { prefix = "", program, planFor } = this.#parts;
    const node = new NodeProcess(slot, program, planFor(`${prefix}${slot + 1}.${this.#started}`));
    this.#nodes[slot] = node;
    void node.exited.then(() => this.#ended(node));
    await node.hear("ready", startWithinMs);
  }

  #ended(node: NodeProcess): void {
    if (node.hasFailed) this.#failed.push(node);
    else if (!this.#stopping) {
      const replacing: Promise<void> = this.#launch(node.slot).finally(() =>
        this.#replacing.delete(replacing),
      );
      this.#replacing.add(replacing);
    }
  }
}
