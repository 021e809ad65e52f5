import type { Clock } from "../clock.ts";
import type { AnyDefinition } from "../definition.ts";
import type { JobsForHandlers } from "../enqueue.ts";
import { EscapementError } from "../errors.ts";
import type { HandlerContext, HandlerJob } from "../handler.ts";
import { idempotencyKey } from "../idempotency.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { validate } from "../schema.ts";
import type { Success } from "../state.ts";
import type { EffectInbox } from "../store/inbox.ts";
import type { Store } from "../store/store.ts";
import type { Around } from "../telemetry/middleware.ts";
import { traceOf, withoutTrace } from "../telemetry/trace.ts";
import { checkDispatchable } from "../unreadable.ts";
import type { Held } from "./held.ts";
import { inboxTransaction } from "./inbox-transaction.ts";
import { JobTransaction } from "./job-transaction.ts";
import { type Ending, UnkeptValue } from "./outcome.ts";
import type { Reporter } from "./reporter.ts";
import { ThreadCrash, type Threads } from "./threads.ts";

/** How one dispatch ended; `committed` when the job's success is already in the store, through `tx`. */
export type DispatchEnd =
  | { readonly kind: "ended"; readonly ending: Ending }
  | {
      readonly kind: "committed";
      readonly value: unknown;
      readonly success: Success | null;
      readonly late: unknown;
    };

export interface RunnerParts {
  readonly namespace: string;
  readonly claimer: string;
  readonly store: Store;
  readonly runtime: Runtime;
  readonly reporter: Reporter;
  readonly threads: Threads;
  readonly jobs: JobsForHandlers;
  readonly maxResultBytes: number;
  /** Where `tx` commits, on a store without transactions. */
  readonly inbox: EffectInbox | null;
  /** What runs around handlers; null: nothing. */
  readonly around: Around | null;
  onProgress(held: Held, value: unknown): void;
}

/** Dispatches one held job to its handler and waits until that has settled. It never rejects. */
export async function runJob(held: Held, parts: RunnerParts): Promise<DispatchEnd> {
  const { job, definition } = held;
  const transaction = new JobTransaction(held, parts);
  const cancelTimeout = armTimeout(held, parts.runtime.clock);
  try {
    const { run } = definition;
    if (run === null)
      throw new EscapementError("unknown-job", `job ${JSON.stringify(job.name)} has no handler here`);
    const input = definition.schema === null ? parseInput(held) : await checkInput(held, definition.schema);
    const context = contextOf(held, input, transaction, parts);
    const value =
      parts.around !== null
        ? await parts.around(context, () => callHandler(run, context, held, parts))
        : run instanceof URL
          ? await parts.threads.run(run, context, held.endSignal)
          : await run(context);
    if (transaction.committed) return committed(transaction, null);
    return { kind: "ended", ending: { kind: "returned", value } };
  } catch (error) {
    if (transaction.committed) return committed(transaction, error);
    if (error instanceof Unreadable) {
      return { kind: "ended", ending: { kind: "unreadable", error: error.cause } };
    }
    if (error instanceof ThreadCrash) {
      return { kind: "ended", ending: { kind: "crashed", reason: error.message } };
    }
    const kind = transaction.isBrokenBy(error) ? "store-failed" : "threw";
    return { kind: "ended", ending: { kind, error } };
  } finally {
    cancelTimeout?.();
  }
}

function callHandler(
  run: NonNullable<AnyDefinition["run"]>,
  context: HandlerContext<never>,
  held: Held,
  { threads }: RunnerParts,
): unknown {
  return run instanceof URL ? threads.run(run, context, held.endSignal) : run(context);
}

/** Expensive parts are created when the handler reads them: most read few. */
function contextOf(
  held: Held,
  input: unknown,
  transaction: JobTransaction,
  parts: RunnerParts,
): HandlerContext<never> {
  const { jobs, reporter, namespace } = parts;
  let described: HandlerJob | null = null;
  return {
    input: input as never,
    get job() {
      described ??= describeJob(held, namespace);
      return described;
    },
    get signal() {
      return held.signal;
    },
    tx: (fn) => txOf(held, transaction, parts)(fn),
    enqueue: transaction.joined(jobs, "enqueue"),
    enqueueMany: transaction.joined(jobs, "enqueueMany"),
    get: jobs.get,
    log: (line) => reporter.line(held, line),
    progress(value) {
      reporter.progress(held, value);
      parts.onProgress(held, value instanceof UnkeptValue ? undefined : value);
    },
  };
}

function txOf(held: Held, transaction: JobTransaction, parts: RunnerParts): HandlerContext<never>["tx"] {
  const { inbox, namespace, runtime } = parts;
  if (inbox === null) return transaction.run;
  const signal = (): AbortSignal => held.signal;
  const key = idempotencyKey({ namespace, ...held.job });
  return transaction.watch(inboxTransaction(inbox, key, { clock: runtime.clock, signal }));
}

function committed({ value, success }: JobTransaction, late: unknown): DispatchEnd {
  return { kind: "committed", value, success, late };
}

function armTimeout(held: Held, clock: Clock): (() => void) | null {
  const { timeoutMs } = held.definition;
  if (timeoutMs === null) return null;
  return clock.after(timeoutMs, () => {
    held.stop("timeout", `the job took longer than its timeout of ${timeoutMs} ms`);
  });
}

/** Thrown in place of a handler's call; what a handler throws itself is its own failure. */
class Unreadable extends Error {
  override readonly name = "Unreadable";

  constructor(cause: unknown) {
    super("the job cannot be read here", { cause });
  }
}

function parseInput({ job }: Held): unknown {
  try {
    checkDispatchable(job);
    return JSON.parse(job.input);
  } catch (error) {
    throw new Unreadable(error);
  }
}

/** The input as the schema returns it: what was enqueued by another version of the code may not fit any more. */
async function checkInput(held: Held, schema: NonNullable<AnyDefinition["schema"]>): Promise<unknown> {
  const value = parseInput(held);
  try {
    return await validate(schema, value, `job ${JSON.stringify(held.definition.name)}`);
  } catch (error) {
    throw new Unreadable(error);
  }
}

/** Field by field: copying what is left of an object by `...` takes a hundred times as long. */
function describeJob({ job }: Held, namespace: string): HandlerJob {
  const { id, schedule, fireAt } = job;
  // What the handler does to the Date that it is given must not change its key.
  const fireAtMs = fireAt.getTime();
  const trace = traceOf(job.tags);
  return {
    id,
    name: job.name,
    queue: job.queue,
    delivery: job.delivery,
    priority: job.priority,
    tags: withoutTrace(job.tags),
    runAt: job.runAt,
    fireAt,
    enqueuedAt: job.enqueuedAt,
    attempt: job.attempt,
    attempts: job.attempts,
    crashes: job.crashes,
    maxCrashes: job.maxCrashes,
    redrives: job.redrives,
    token: job.token,
    schedule,
    ...(trace === null ? null : { trace }),
    get idempotencyKey() {
      return idempotencyKey({ namespace, id, schedule, fireAt: new Date(fireAtMs) });
    },
  };
}
