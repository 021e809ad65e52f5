import { AsyncLocalStorage } from "node:async_hooks";
import { Worker as Thread } from "node:worker_threads";
import { type ErrorRecord, EscapementError, recordError, UnrecoverableError } from "../errors.ts";
import { type HandlerContext, type HandlerJob, Snooze, type StopReason } from "../handler.ts";
import { siblingModule } from "../runtime/sibling-module.ts";
import { UnkeptValue } from "./outcome.ts";
import { threadOptions } from "./thread-options.ts";

/** What the main thread sends to a handler's thread. */
export type ThreadOrder =
  | {
      readonly kind: "run";
      readonly run: number;
      readonly module: string;
      readonly input: unknown;
      readonly job: HandlerJob;
    }
  | { readonly kind: "stop"; readonly cause: string; readonly message: string }
  | ({ readonly kind: "answer"; readonly call: number } & CallAnswer);

/** The result of a call that a handler's thread asked for. */
export type CallAnswer = { readonly value: unknown } | { readonly error: ErrorRecord };

/** What a handler's thread answers, and about which run. */
export type ThreadAnswer = ThreadNews & { readonly run: number };

/** A value that leaves the thread; `why`: it cannot. */
export interface Copy {
  readonly value: unknown;
  readonly why?: string;
}

export type ThreadNews =
  | { readonly kind: "log"; readonly line: string }
  | ({ readonly kind: "progress" } & Copy)
  | {
      readonly kind: "call";
      readonly call: number;
      readonly verb: "enqueue" | "enqueueMany" | "get";
      readonly values: readonly unknown[];
    }
  | ({ readonly kind: "returned" } & Copy)
  | { readonly kind: "snoozed"; readonly delayMs: number }
  | { readonly kind: "threw"; readonly error: ErrorRecord; readonly unrecoverable: boolean };

/** A thread ended unasked in the middle of a job: `process.exit`, out of memory, a native fault. */
export class ThreadCrash extends Error {
  override readonly name: string = "ThreadCrash";
}

/** How long a handler that must stop for good may take before its thread is ended. */
const graceMs = 1_000;
const maxIdle = 8;

/** Runs handlers that are in their own modules, each job in a thread of its own while it runs. */
export class Threads {
  readonly #idle: Thread[] = [];
  readonly #all = new Set<Thread>();
  #runs = 0;

  /** @param endSignal fires when the thread must end, whether its handler listens or not. */
  run(module: URL, context: HandlerContext<never>, endSignal: AbortSignal): Promise<unknown> {
    const thread = this.#takeIdle() ?? this.#spawn();
    thread.ref();
    this.#runs += 1;
    const run = this.#runs;
    // What the handler enqueues runs in the async context of its caller, so traces follow it.
    const within = AsyncLocalStorage.snapshot();
    return new Promise<unknown>((resolve, reject) => {
      let ending: NodeJS.Timeout | undefined;
      let isEnding = false;
      const order = (what: ThreadOrder): void => thread.postMessage(what);
      const onStop = (): void => {
        const { cause, message } = context.signal.reason as StopReason;
        order({ kind: "stop", cause, message });
      };
      const onEnd = (): void => {
        ending = setTimeout(() => {
          isEnding = true;
          void thread.terminate();
        }, graceMs);
      };
      const settle = (finish: () => void, reusable: boolean): void => {
        clearTimeout(ending);
        context.signal.removeEventListener("abort", onStop);
        endSignal.removeEventListener("abort", onEnd);
        // By name: removing all listeners would also remove those by which the thread itself receives messages.
        thread.off("message", onMessage).off("error", onError).off("exit", onExit);
        if (reusable && !isEnding) this.#release(thread);
        else this.#all.delete(thread);
        finish();
      };
      const onMessage = (answer: ThreadAnswer): void => {
        // What an earlier job left behind in this thread no longer counts.
        if (answer.run !== run) return;
        if (answer.kind === "log") context.log(answer.line);
        else if (answer.kind === "progress") context.progress(crossed(answer));
        else if (answer.kind === "call") void within(callFor, context, answer).then(order);
        else settle(() => conclude(answer, resolve, reject), true);
      };
      const onGone = (why: string): void => {
        const { aborted, reason } = endSignal;
        settle(() => reject(aborted ? reason : new ThreadCrash(why)), false);
      };
      const onError = (error: unknown): void => onGone(`its thread failed: ${recordError(error).message}`);
      const onExit = (code: number): void => onGone(`its thread ended (exit code ${code})`);
      thread.on("message", onMessage).on("error", onError).on("exit", onExit);
      context.signal.addEventListener("abort", onStop, { once: true });
      endSignal.addEventListener("abort", onEnd, { once: true });
      try {
        order({ kind: "run", run, module: module.href, input: context.input, job: context.job });
      } catch (error) {
        // An input that a schema turned into something that cannot cross to a thread.
        return settle(() => reject(error), true);
      }
      // What fired before there was a listener.
      if (context.signal.aborted) onStop();
      if (endSignal.aborted) onEnd();
    });
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#all].map((thread) => thread.terminate()));
    this.#all.clear();
    this.#idle.length = 0;
  }

  #spawn(): Thread {
    const entry = siblingModule(import.meta.url, "thread-entry");
    if (entry === null) {
      throw new EscapementError(
        "invalid-option",
        "escapement was bundled, and a bundle has no file to start a handler's thread from; mark escapement as external in the bundler, or run the handler inline",
      );
    }
    const thread = new Thread(entry, threadOptions());
    // A failure after its job does not matter, but without a listener it would end the process.
    thread.on("error", () => {});
    this.#all.add(thread);
    return thread;
  }

  #takeIdle(): Thread | undefined {
    const thread = this.#idle.pop();
    const forget = thread && this.#watchers.get(thread);
    if (thread && forget) thread.off("exit", forget).off("error", forget);
    return thread;
  }

  readonly #watchers = new WeakMap<Thread, () => void>();

  #release(thread: Thread): void {
    thread.unref();
    if (this.#idle.length < maxIdle) {
      this.#idle.push(thread);
      // An idle thread that dies is not a crash of a job; it just must not be used again.
      const forget = (): void => this.#forget(thread);
      thread.once("exit", forget).once("error", forget);
      this.#watchers.set(thread, forget);
      return;
    }
    this.#all.delete(thread);
    void thread.terminate();
  }

  #forget(thread: Thread): void {
    this.#all.delete(thread);
    const index = this.#idle.indexOf(thread);
    if (index >= 0) this.#idle.splice(index, 1);
  }
}

type Concluding = Extract<ThreadAnswer, { kind: "returned" | "snoozed" | "threw" }>;

function conclude(
  answer: Concluding,
  resolve: (value: unknown) => void,
  reject: (error: unknown) => void,
): void {
  if (answer.kind === "returned") {
    return resolve(crossed(answer));
  }
  if (answer.kind === "snoozed") return resolve(new Snooze(answer.delayMs));
  reject(revive(answer.error, answer.unrecoverable));
}

function crossed({ value, why }: Copy): unknown {
  return why === undefined ? value : new UnkeptValue(why);
}

type Call = Extract<ThreadNews, { kind: "call" }>;

/** Enqueues or queries for a handler that has no store. */
async function callFor(context: HandlerContext<never>, { call, verb, values }: Call): Promise<ThreadOrder> {
  try {
    const ask = context[verb] as (...values: readonly unknown[]) => Promise<unknown>;
    return { kind: "answer", call, value: await ask(...values) };
  } catch (error) {
    return { kind: "answer", call, error: recordError(error) };
  }
}

/** The error as it was in the other thread, as far as a copy can be. */
export function revive(record: ErrorRecord, unrecoverable: boolean): Error {
  const error = unrecoverable ? new UnrecoverableError(record.message) : new Error(record.message);
  Object.defineProperty(error, "name", { value: record.name });
  if (record.stack !== undefined) error.stack = record.stack;
  return record.code === undefined ? error : Object.assign(error, { code: record.code });
}

/** What `tx` does in a thread: the transaction belongs to the main thread's connection. */
export function noTransaction(): never {
  throw new EscapementError(
    "transaction-unavailable",
    "tx is not available to a handler that runs in a thread; run it inline, or keep the effect idempotent",
  );
}
