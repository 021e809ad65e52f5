import type { Clock } from "../clock.ts";
import type { AnyDefinition } from "../definition.ts";
import { EscapementError, UnrecoverableError } from "../errors.ts";
import { type HandlerContext, type HandlerJob, Snooze, StopReason } from "../handler.ts";
import type { Logger } from "../log.ts";
import type { MessageFacts } from "../message/message.ts";
import { validate } from "../schema.ts";
import type { Around } from "../telemetry/middleware.ts";
import { Threads } from "../worker/threads.ts";
import { noStore } from "./no-store.ts";

/** One call of a handler. */
export interface Dispatch {
  readonly definition: AnyDefinition;
  readonly facts: MessageFacts;
  readonly body: string;
  /** The number of this attempt. */
  readonly attempt: number;
  readonly attempts: number;
  /** Where `tx` commits. */
  readonly tx: HandlerContext<unknown>["tx"];
  /** Fires when the process must stop now; its reason is a {@link StopReason}. */
  readonly stopped: AbortSignal;
  /** Fires when another copy may begin. */
  readonly lost: AbortSignal | null;
  /** How long a handler may continue after its timeout before it is given up. */
  readonly graceMs: number;
}

export type Ended =
  | { readonly kind: "returned" }
  | { readonly kind: "snoozed"; readonly delayMs: number }
  /** Not the handler's fault: it uses up no attempt. */
  | { readonly kind: "interrupted"; readonly error: unknown }
  | { readonly kind: "threw"; readonly error: unknown; readonly isPointless: boolean };

/** Runs handlers as a worker would. */
export class Dispatcher {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #around: Around | null;
  readonly #threads = new Threads();

  /** @param around what runs around handlers; null: nothing. */
  constructor(clock: Clock, log: Logger, around: Around | null) {
    this.#clock = clock;
    this.#log = log;
    this.#around = around;
  }

  /** Waits until the handler has settled, or gives up some time after its timeout. It never rejects. */
  async run(dispatch: Dispatch): Promise<Ended> {
    const { definition, facts, stopped, lost, graceMs } = dispatch;
    const stop = new AbortController();
    const onStopped = (): void => stop.abort(stopped.reason);
    const onLost = (): void =>
      stop.abort(new StopReason("lease-lost", "the message may be handled by another process by now"));
    if (stopped.aborted) onStopped();
    stopped.addEventListener("abort", onStopped, { once: true });
    lost?.addEventListener("abort", onLost, { once: true });
    const { timeoutMs } = definition;
    const givenUp = Promise.withResolvers<never>();
    let cancel = (): void => {};
    if (timeoutMs !== null) {
      cancel = this.#clock.after(timeoutMs, () => {
        const reason = new StopReason("timeout", `the job took longer than its timeout of ${timeoutMs} ms`);
        stop.abort(reason);
        cancel = this.#clock.after(graceMs, () => givenUp.reject(reason));
      });
    }
    try {
      const value = await Promise.race([this.#call(dispatch, stop.signal), givenUp.promise]);
      const isLate = causeOf(stop.signal) === "timeout";
      if (isLate) return { kind: "threw", error: stop.signal.reason, isPointless: false };
      return value instanceof Snooze ? { kind: "snoozed", delayMs: value.delayMs } : { kind: "returned" };
    } catch (error) {
      const cause = causeOf(stop.signal);
      if (cause === "shutdown" || cause === "lease-lost") return { kind: "interrupted", error };
      this.#log.debug({ error, id: facts.id, name: facts.name }, "a handler failed");
      return { kind: "threw", error, isPointless: isPointless(error) };
    } finally {
      cancel();
      stopped.removeEventListener("abort", onStopped);
      lost?.removeEventListener("abort", onLost);
    }
  }

  async stop(): Promise<void> {
    await this.#threads.stop();
  }

  async #call(dispatch: Dispatch, signal: AbortSignal): Promise<unknown> {
    const { definition, facts, body, tx } = dispatch;
    const { run } = definition;
    if (run === null)
      throw new EscapementError("unknown-job", `job ${JSON.stringify(facts.name)} has no handler here`);
    const context: HandlerContext<never> = {
      input: (await readInput(definition, body)) as never,
      job: describeJob(dispatch),
      signal,
      tx,
      ...noStore,
      log: (line) => this.#log.info({ id: facts.id, name: facts.name }, line),
      progress: (value) => this.#log.debug({ id: facts.id, name: facts.name, value }, "progress"),
    };
    const call = (): unknown => (run instanceof URL ? this.#threads.run(run, context, signal) : run(context));
    return this.#around === null ? call() : this.#around(context, call);
  }
}

function causeOf(signal: AbortSignal): string | null {
  return signal.aborted && signal.reason instanceof StopReason ? signal.reason.cause : null;
}

function isPointless(error: unknown): boolean {
  if (error instanceof UnrecoverableError) return true;
  return error instanceof EscapementError && ["invalid-input", "unknown-job"].includes(error.code);
}

function readInput({ schema, name }: AnyDefinition, body: string): unknown {
  const what = `job ${JSON.stringify(name)}`;
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (error) {
    throw new EscapementError("invalid-input", `the input of ${what} is not JSON`, { cause: error });
  }
  return schema === null ? value : validate(schema, value, what);
}

/** Fields that a message does not carry come from the definition, or are those of a job that was just enqueued. */
function describeJob({ definition, facts, attempt, attempts }: Dispatch): HandlerJob {
  return {
    id: facts.id,
    name: facts.name,
    queue: facts.queue,
    delivery: facts.delivery,
    priority: definition.priority,
    tags: [],
    runAt: new Date(facts.fireAt),
    fireAt: new Date(facts.fireAt),
    enqueuedAt: new Date(facts.fireAt),
    attempt,
    attempts,
    crashes: 0,
    maxCrashes: definition.maxCrashes ?? 3,
    redrives: facts.redrives,
    token: facts.token,
    schedule: facts.schedule,
    idempotencyKey: facts.idempotencyKey,
    ...(facts.trace === undefined ? {} : { trace: facts.trace }),
  };
}
