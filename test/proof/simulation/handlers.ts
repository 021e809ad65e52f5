import type { Escapement } from "../../../src/app/escapement.ts";
import { type AnyDefinition, type DefinitionOptions, defineJob } from "../../../src/definition.ts";
import { EscapementError, isTransient, UnrecoverableError } from "../../../src/errors.ts";
import { type HandlerContext, StopReason, snooze } from "../../../src/handler.ts";
import type { MemoryTransaction } from "../../../src/stores/memory/index.ts";
import type { Chance } from "../../../src/testing/chance.ts";
import type { HandlerRun, History, RunEnd } from "./history.ts";
import type { NodeWitness } from "./node-witness.ts";
import { never, type SimulatedProcess } from "./simulated-process.ts";
import type { Weather } from "./weather.ts";
import { type Act, type Kind, type Script, spawnedId, spawnedScript } from "./workload.ts";

export interface StageParts {
  readonly process: SimulatedProcess;
  readonly history: History;
  readonly weather: Weather;
  readonly chance: Chance;
  readonly witness: NodeWitness;
  /** The app that the handlers belong to. */
  app(): Escapement;
}

type Context = HandlerContext<Script>;

export const attempts = 4;
/** What the store must hold to, over all nodes. */
export const limits = { keyed: 1, rated: { limit: 2, perMs: 1_500 } } as const;
/** Its own queue, with limits of its own. */
export const bulkQueue = "bulk";

/** The definitions as one process has them: their handlers live and die with it. */
export function defineJobs(parts: StageParts): AnyDefinition[] {
  const backoff = { type: "exponential", delay: 500, max: 4_000 } as const;
  const of = (name: Kind, options: Partial<DefinitionOptions<Script, unknown>>): AnyDefinition =>
    defineJob<Script>({
      name,
      retry: { attempts, backoff },
      run: (context) => dispatch(context, parts),
      ...options,
    });
  const key = (script: Script): string => script.key;
  return [
    of("plain", {}),
    of("once", { delivery: "at-most-once" }),
    of("effect", { delivery: "effectively-once" }),
    of("keyed", { concurrency: { key, limit: limits.keyed }, queue: bulkQueue }),
    of("rated", { rate: { key, limit: limits.rated.limit, per: limits.rated.perMs }, queue: bulkQueue }),
    of("unique", { unique: { key, for: "pending" } }),
    of("debounced", { debounce: { key, wait: 1_000, max: 3_000 } }),
    of("timed", { timeout: parts.weather.leaseMs / 2, maxCrashes: 2 }),
  ];
}

/** Writes down what the handler does, and keeps a dead process from doing anything more. */
async function dispatch(context: Context, parts: StageParts): Promise<unknown> {
  const { process, history, witness } = parts;
  if (!process.alive) return never();
  const turn = history.runsOf(context.job.id).length;
  const run = history.started(process, context.job);
  watchSignal(context.signal, run, parts);
  const stage = new Stage(context, parts);
  let settle: () => unknown;
  let end: RunEnd;
  try {
    const value = await stage.perform(turn);
    settle = () => value;
    end = stage.committed ? "committed" : stage.snoozed ? "snoozed" : "returned";
  } catch (error) {
    settle = () => {
      throw error;
    };
    end = stage.committed ? "committed" : stage.isBrokenBy(error) ? "store-failed" : endOf(error);
  }
  if (!process.alive) return never();
  history.ended(run, end);
  witness.ended(run);
  return settle();
}

function watchSignal(signal: AbortSignal, run: HandlerRun, { process, history }: StageParts): void {
  const note = (): void => {
    if (process.alive && run.endedAt === null) history.signalled(run, (signal.reason as StopReason).cause);
  };
  if (signal.aborted) note();
  else signal.addEventListener("abort", note, { once: true });
}

function endOf(error: unknown): RunEnd {
  if (error instanceof StopReason) return "interrupted";
  return error instanceof UnrecoverableError ? "gave-up" : "threw";
}

/** One turn of one job's script. */
class Stage {
  readonly #context: Context;
  readonly #parts: StageParts;
  #deaf: boolean;
  /** What the function of its transaction threw itself, which is its own failure. */
  #threw: unknown = null;
  committed = false;
  snoozed = false;

  constructor(context: Context, parts: StageParts) {
    this.#context = context;
    this.#parts = parts;
    this.#deaf = context.input.deaf;
  }

  async perform(turn: number): Promise<unknown> {
    const { input, job } = this.#context;
    try {
      return await this.#play(turn);
    } catch (error) {
      const insists = input.stubborn && job.delivery === "effectively-once" && error instanceof StopReason;
      if (!insists || this.committed) throw error;
      this.#deaf = true;
      return this.#effect();
    }
  }

  /** Whether it failed because the store did, under its transaction. */
  isBrokenBy(error: unknown): boolean {
    return isTransient(error) && error !== this.#threw;
  }

  async #play(turn: number): Promise<unknown> {
    const { input, job, progress, log } = this.#context;
    const act = input.acts[Math.min(turn, input.acts.length - 1)];
    for (const [index, workMs] of (act?.workMs ?? []).entries()) {
      if (input.talks) progress(index);
      await this.#work(workMs);
    }
    if (input.talks) log(`at the end of turn ${turn}`);
    return this.#end(act?.ends ?? "return", job.delivery === "effectively-once");
  }

  async #end(ends: Act["ends"], hasEffect: boolean): Promise<unknown> {
    switch (ends) {
      case "return":
        return hasEffect ? this.#effect() : "done";
      case "throw":
        throw new Error("as planned");
      case "give-up":
        throw new UnrecoverableError("as planned");
      case "snooze":
        this.snoozed = true;
        return snooze(700);
      case "kill":
        this.#parts.process.crash(`killed by ${this.#context.job.id}`);
        return never();
    }
  }

  async #effect(): Promise<unknown> {
    const { afterEffect } = this.#context.input;
    try {
      await this.#commit();
    } catch (error) {
      const unsure = error instanceof EscapementError && error.code === "store-unavailable";
      if (afterEffect !== "repeat" || !unsure) throw error;
      await this.#commit();
    }
    await this.#work(5);
    if (afterEffect === "throw") throw new Error("after its effect, as planned");
    return "done";
  }

  async #commit(): Promise<void> {
    const { job, tx, input } = this.#context;
    await tx<Promise<string>, MemoryTransaction>(async (db) => {
      await this.#work(input.effectMs);
      if (input.spawns) {
        const spawning = this.#parts.app().enqueue("plain", spawnedScript, { id: spawnedId(job.id), tx: db });
        await spawning.catch((error: unknown) => {
          this.#threw = error;
          throw error;
        });
      }
      db.set(`${job.id} ${job.token} ${job.idempotencyKey}`, this.#parts.process.name);
      return "effected";
    });
    this.committed = true;
  }

  /** Waits on the process's clock. The process may die in any wait; a handler that listens ends when it is told to. */
  #work(ms: number): Promise<void> {
    const { process, weather, chance } = this.#parts;
    const { signal } = this.#context;
    if (weather.crashesAtWork(chance))
      process.clock.after(chance.real(0, ms), () => process.crash("at work"));
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        cancel();
        reject(signal.reason);
      };
      const cancel = process.clock.after(ms, () => {
        signal.removeEventListener("abort", stop);
        resolve();
      });
      if (this.#deaf) return;
      if (signal.aborted) stop();
      else signal.addEventListener("abort", stop, { once: true });
    });
  }
}
