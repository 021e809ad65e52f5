import type { AnyDefinition } from "../definition.ts";
import type { EnqueueOptions } from "../enqueue.ts";
import { describe, EscapementError } from "../errors.ts";
import { slotOf } from "../id.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { withRetries } from "../runtime/transient.ts";
import type { EnqueueParams, EnqueueResult, NewJob } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";
import { enqueueChunk, writeInChunks } from "./chunks.ts";

/** A job that was asked for, before it is made. */
export interface Asked {
  readonly target: AnyDefinition | string;
  readonly input: unknown;
  readonly options: EnqueueOptions;
}

/** What an `enqueueMany` is about. */
export interface AskedMany {
  readonly asked: readonly Asked[];
  /** Of several definitions: all of them or none. */
  readonly isMixed: boolean;
  readonly options: unknown;
}

/** Reads the arguments of `enqueueMany` in either of its forms: a definition and its items, or items that name their own. */
export function readMany(first: unknown, second: unknown, third: unknown): AskedMany {
  if (isList(first)) {
    const asked = [...first].map((item) => {
      const { job, input, ...options } = checkItem(item);
      return { target: job as AnyDefinition | string, input, options: withoutTx(options) };
    });
    return { asked, isMixed: true, options: second ?? {} };
  }
  if (!isList(second)) {
    throw new EscapementError(
      "invalid-option",
      `expected the items of enqueueMany to be a list, got ${describe(second)}`,
    );
  }
  const target = first as AnyDefinition | string;
  const asked = [...second].map((item) => {
    const { input, ...options } = checkItem(item);
    return { target, input, options: withoutTx(options) };
  });
  return { asked, isMixed: false, options: third ?? {} };
}

function isList(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

function checkItem(item: unknown): Record<string, unknown> {
  if (typeof item === "object" && item !== null) return item as Record<string, unknown>;
  throw new EscapementError(
    "invalid-option",
    `expected an item of enqueueMany to be an object such as { input }, got ${describe(item)}`,
  );
}

function withoutTx(options: Record<string, unknown>): EnqueueOptions {
  if (options["tx"] === undefined) return options;
  throw new EscapementError(
    "invalid-option",
    "expected tx to be an option of enqueueMany itself, got one on an item: all its jobs go through one transaction",
  );
}

/** Refuses what one atomic trip cannot take. */
export function checkOneTrip(jobs: readonly NewJob[], acrossSlots: boolean): void {
  if (jobs.length > enqueueChunk) {
    throw new EscapementError(
      "invalid-option",
      `expected at most ${enqueueChunk} jobs of several definitions, got ${jobs.length}: more than that cannot be written all or none unless you pass tx; split them up`,
    );
  }
  if (acrossSlots || new Set(jobs.map(({ id }) => slotOf(id))).size <= 1) return;
  throw new EscapementError(
    "invalid-option",
    "expected jobs of one slot, got ids of several: this store spreads its slots and cannot write them all or none; give ids with the same {tag}",
  );
}

/** Writes jobs in their order. Those behind a chunk that fails are not written, and the error says how many were. */
export async function writeMany(
  runtime: Runtime,
  store: Store,
  { jobs, allOrNone }: EnqueueParams,
  onWritten: (results: readonly EnqueueResult[]) => void,
): Promise<void> {
  const write = (chunk: readonly NewJob[], before?: Promise<unknown>): Promise<EnqueueResult[]> => {
    // However the chunk before it failed, that is no reason to retry this one.
    const follows = before?.catch((cause: unknown) => {
      throw new Error("the jobs before these were not written", { cause });
    });
    return withRetries(runtime, () => store.enqueue({ jobs: chunk, allOrNone, follows }));
  };
  await writeInChunks(runtime.clock, jobs, write, async ({ start, written }) => {
    const results = await written.catch((error: unknown) => {
      throw asPartial(error, start, jobs.length);
    });
    onWritten(results);
  });
}

export function asRefused(
  refused: readonly EnqueueResult[],
  total: number,
  allOrNone: boolean,
): EscapementError {
  const first = refused.find(({ parent }) => parent !== undefined) ?? refused[0];
  const who = `${JSON.stringify(first?.id)} waits for ${JSON.stringify(first?.parent)}`;
  return new EscapementError(
    "unknown-parent",
    allOrNone
      ? `job ${who}, which does not exist, so none of the ${total} jobs was written; put parents before their children`
      : `${refused.length} of ${total} jobs wait for parents that do not exist, the first of them ${who}; the others were written`,
  );
}

function asPartial(error: unknown, written: number, total: number): unknown {
  if (!(error instanceof EscapementError)) return error;
  return new EscapementError(
    error.code,
    `${error.message} (${written} of ${total} jobs were written before that)`,
    { cause: error },
  );
}
