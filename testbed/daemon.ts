import { type ChildProcess, execFileSync } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Command, launch } from "./command.ts";
import { descendants, isRunning, signal } from "./process-tree.ts";

const startTimeoutMs = 90_000;
const stopTimeoutMs = 20_000;
const pollMs = 30;

export interface DaemonOptions {
  readonly name: string;
  readonly command: () => Command;
  readonly log: string;
  /** Whether it answers; asked again and again until it does. */
  readonly isReady: () => Promise<boolean>;
  /** What makes it end in good order. */
  readonly stopSignal: NodeJS.Signals;
  /** What makes it end at once when its data is thrown away. @default "SIGKILL" */
  readonly discardSignal?: NodeJS.Signals;
}

/** One process of a server: it can be started again after it was stopped or killed. */
export class Daemon {
  readonly name: string;
  readonly #options: DaemonOptions;
  #running:
    | { readonly child: ChildProcess; readonly command: Command; readonly ended: Promise<void> }
    | undefined;

  constructor(options: DaemonOptions) {
    this.name = options.name;
    this.#options = options;
  }

  async start(): Promise<void> {
    if (this.#running) return;
    const { command, log, isReady } = this.#options;
    const fd = openSync(log, "a");
    const running = this.#watch(command(), fd);
    closeSync(fd);
    const deadline = Date.now() + startTimeoutMs;
    while (!(await isReady().catch(() => false))) {
      if (this.#running !== running) throw new Error(`${this.name} ended while it started:\n${tail(log)}`);
      if (Date.now() > deadline) {
        await this.kill();
        throw new Error(`${this.name} was not ready after ${startTimeoutMs} ms:\n${tail(log)}`);
      }
      await sleep(pollMs);
    }
  }

  async stop(): Promise<void> {
    await this.#end(this.#options.stopSignal);
  }

  /** Ends it fast, for the last time. */
  async discard(): Promise<void> {
    await this.#end(this.#options.discardSignal ?? "SIGKILL");
  }

  /** Ends it as a crash would: it and all of its processes by SIGKILL. */
  async kill(): Promise<void> {
    if (!this.#running) return;
    const { child, command, ended } = this.#running;
    if (command.container !== undefined) docker("kill", command.container);
    else if (child.pid !== undefined) {
      const all = freeze(child.pid);
      for (const pid of all) signal(pid, "SIGKILL");
      while (all.slice(1).some(isRunning)) await sleep(pollMs);
    }
    await ended;
  }

  /** Stops it from running without telling anyone: connections stay open and get no answer. */
  pause(): void {
    if (!this.#running) return;
    const { child, command } = this.#running;
    if (command.container !== undefined) docker("pause", command.container);
    else if (child.pid !== undefined) freeze(child.pid);
  }

  resume(): void {
    if (!this.#running) return;
    const { child, command } = this.#running;
    if (command.container !== undefined) docker("unpause", command.container);
    else if (child.pid !== undefined) {
      for (const pid of [...descendants(child.pid), child.pid]) signal(pid, "SIGCONT");
    }
  }

  #watch(command: Command, fd: number) {
    const child = launch(command, ["ignore", fd, fd]);
    const ended = new Promise<void>((resolve) => {
      child.once("exit", () => resolve());
      child.once("error", () => resolve());
    });
    const running = { child, command, ended };
    this.#running = running;
    void ended.then(() => {
      if (this.#running === running) this.#running = undefined;
    });
    return running;
  }

  async #end(name: NodeJS.Signals): Promise<void> {
    if (!this.#running) return;
    const { child, command, ended } = this.#running;
    this.resume();
    if (command.container !== undefined) docker("kill", `--signal=${name}`, command.container);
    else child.kill(name);
    const inTime = await Promise.race([ended.then(() => true), sleep(stopTimeoutMs, false, { ref: false })]);
    if (!inTime) await this.kill();
  }
}

/** Pauses a process and all that it has started, also what they start while they are being looked for. */
function freeze(pid: number): number[] {
  const paused = new Set<number>();
  for (let all = [pid]; all.length > 0; all = descendants(pid).filter((each) => !paused.has(each))) {
    for (const each of all) {
      signal(each, "SIGSTOP");
      paused.add(each);
    }
  }
  return [...paused];
}

function docker(...args: string[]): void {
  try {
    execFileSync("docker", args, { stdio: "ignore" });
  } catch {
    // The container has ended by itself; whoever waits for the end sees that.
  }
}

function tail(log: string): string {
  return readFileSync(log, "utf8").trim().split("\n").slice(-10).join("\n");
}
