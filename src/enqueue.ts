/** How jobs are enqueued, as an app's callers and its handlers see it. */
import type { AnyDefinition, JobDefinition } from "./definition.ts";
import type { Duration } from "./duration.ts";
import { EscapementError } from "./errors.ts";
import type { Job } from "./job.ts";
import type { EnqueueReceipt, JobRef } from "./receipt.ts";
import type { EnqueueWithin } from "./store/claims.ts";

export interface EnqueueOptions {
  /** The same id is the same job, in whatever state it is, for as long as it is kept. @default a new UUID */
  readonly id?: string;
  /** How long from now it is due. @default at once */
  readonly delay?: Duration;
  /** When it is due; not together with `delay`. */
  readonly runAt?: Date;
  /** Higher runs first. @default the definition's */
  readonly priority?: number;
  readonly tags?: readonly string[];
  /** Not started this long after it was due: recorded as expired. @default the definition's */
  readonly expireIn?: Duration;
  /** Maximum attempts: how many may fail before the job is dead. @default the definition's */
  readonly attempts?: number;
  /** Jobs that must have succeeded before: ids, or what enqueueing them returned. */
  readonly after?: readonly JobRef[];
  /** What to do when one of `after` ends in any other state. @default "cancel" */
  readonly afterFailure?: "cancel" | "run";
  /** The caller's own open transaction on the store's database: the job exists if and when it commits. */
  readonly tx?: unknown;
}

export interface EnqueueManyOptions {
  /** Called after each chunk with the number written and the total. */
  readonly onProgress?: (written: number, total: number) => void;
  /** The caller's own open transaction on the store's database: the jobs exist if and when it commits. */
  readonly tx?: unknown;
}

type WithoutTx<Options> = Omit<Options, "tx">;

/** One of the jobs of an `enqueueMany` of one definition. */
export type ManyItem<Input> = WithoutTx<EnqueueOptions> &
  (undefined extends Input ? { readonly input?: Input } : { readonly input: Input });

/** One of the jobs of an `enqueueMany` of several definitions. */
export type MixedItem<Definition> = { readonly job: Definition } & ManyItem<InputOf<Definition>>;

/** What a definition takes; anything, where it is only named. */
export type InputOf<Definition> =
  Definition extends JobDefinition<infer Input, unknown>
    ? Input
    : Definition extends string
      ? unknown
      : never;

/** What a definition's jobs result in. */
export type ResultOf<Definition> = Definition extends JobDefinition<never, infer Result> ? Result : unknown;

type Receipts<Definitions> = { -readonly [K in keyof Definitions]: EnqueueReceipt<ResultOf<Definitions[K]>> };

/** The verbs by which jobs are enqueued; `Options` and `ManyOptions` are what may be said with each. */
export interface EnqueueVerbs<Options = EnqueueOptions, ManyOptions = EnqueueManyOptions> {
  /** Enqueues one job. A job whose input may be undefined needs none. */
  enqueue(job: string, input?: unknown, options?: Options): Promise<EnqueueReceipt>;
  enqueue<Result>(
    job: JobDefinition<undefined, Result>,
    input?: undefined,
    options?: Options,
  ): Promise<EnqueueReceipt<Result>>;
  enqueue<Input, Result>(
    job: JobDefinition<Input, Result>,
    input: NoInfer<Input>,
    options?: Options,
  ): Promise<EnqueueReceipt<Result>>;

  /**
   * Enqueues jobs of several definitions, all or none of them: in one trip, so at most 1,000; or in the transaction of the option `tx`, with
   * which they come and go.
   */
  enqueueMany<const Definitions extends readonly (AnyDefinition | string)[]>(
    items: { readonly [K in keyof Definitions]: MixedItem<Definitions[K]> },
    options?: ManyOptions,
  ): Promise<Receipts<Definitions>>;
  /** Enqueues many jobs of one definition, a thousand a trip. All inputs are checked before the first is written. */
  enqueueMany(
    job: string,
    items: Iterable<ManyItem<unknown>>,
    options?: ManyOptions,
  ): Promise<EnqueueReceipt[]>;
  enqueueMany<Input, Result>(
    job: JobDefinition<Input, Result>,
    items: Iterable<ManyItem<NoInfer<Input>>>,
    options?: ManyOptions,
  ): Promise<EnqueueReceipt<Result>[]>;
}

/** Enqueues jobs in the transaction that a handler's `tx` has open: they exist if and when it commits. */
export type TransactionJobs = EnqueueVerbs<WithoutTx<EnqueueOptions>, Record<never, never>>;

/** What a handler may ask of the app that runs it. */
export interface HandlerJobs extends EnqueueVerbs {
  /** A job by its id, or by an id that was absorbed into it. */
  get<Result = unknown>(job: JobRef<Result>): Promise<Job<unknown, Result> | null>;
}

/** What a worker asks of the app for its handlers. */
export interface JobsForHandlers extends HandlerJobs {
  /** For one run of the function of a `tx`. */
  within(write: EnqueueWithin): OpenTransaction;
}

/** The enqueueing side of a handler's open transaction. */
export interface OpenTransaction {
  readonly jobs: TransactionJobs;
  /** Runs the function of the transaction, and fails where something that it enqueued has failed. */
  run<T>(fn: () => T): T | Promise<Awaited<T>>;
}

/** Used where nothing can be enqueued or queried; it throws with the reason. */
export function noJobs(why: string): HandlerJobs {
  const refuse = (): never => {
    throw new EscapementError("enqueue-unavailable", why);
  };
  return { enqueue: refuse, enqueueMany: refuse, get: refuse };
}
