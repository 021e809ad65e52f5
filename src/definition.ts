import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type Duration, parseDuration } from "./duration.ts";
import { describe, EscapementError } from "./errors.ts";
import type { HandlerContext, Snooze } from "./handler.ts";
import { type Delivery, deliveries } from "./job.ts";
import type { Jsonified, JsonSafe, NotJson } from "./json.ts";
import type { Route } from "./message/transport.ts";
import { checkName } from "./names.ts";
import { checkInteger, checkKnown, checkNumber, checkOneOf } from "./options.ts";
import { type JobRetentionOptions, resolveJobRetention } from "./retention.ts";
import { type Backoff, defaultBackoff } from "./retry.ts";
import type { RateLimit } from "./store/claims.ts";
import type { Retention } from "./store/jobs.ts";

/** What a handler may return: its result, which is kept as JSON, or a wish to be called later. */
export type Handler<Input, Result> = (
  context: HandlerContext<Input>,
) => Result | Snooze | Promise<Result | Snooze>;

export interface BackoffOptions {
  /** @default "exponential" */
  readonly type?: "exponential" | "fixed";
  /** The wait after the first failure. @default "30s" */
  readonly delay?: Duration;
  /** No wait is longer. @default "15m" */
  readonly max?: Duration;
  /** A share of the delay, 0 to 1. @default 0.1 */
  readonly jitter?: number;
}

/** @typeParam Output what the handler and the key functions see: the input as the schema returned it. */
export interface DefinitionOptions<Output, Result> {
  readonly name: string;
  /** @default "at-least-once" */
  readonly delivery?: Delivery;
  /** @default "default" */
  readonly queue?: string;
  /** Higher runs first. @default 0 */
  readonly priority?: number;
  /**
   * At most `limit` active jobs for each key, over all nodes; without a key: of this definition. With a route the key is the message's
   * key, which keeps its jobs together in the broker; how many run at once is then the consumers' own to limit.
   */
  readonly concurrency?: { readonly key?: (input: Output) => string; readonly limit: number };
  /** At most `limit` starts per window for each key, over all nodes; without a key: of this definition. Not with a route. */
  readonly rate?: {
    readonly key?: (input: Output) => string;
    readonly limit: number;
    readonly per: Duration;
  };
  /** One job for each key: `"pending"` until it has ended, or for a time after it was enqueued. */
  readonly unique?: { readonly key: (input: Output) => string; readonly for: "pending" | Duration };
  /** Runs once things have been quiet for `wait`, with the latest input; at the latest `max` after the first. */
  readonly debounce?: {
    readonly key: (input: Output) => string;
    readonly wait: Duration;
    readonly max?: Duration;
  };
  readonly retry?: {
    /** Maximum attempts: how many may fail before the job is dead. @default 5 */
    readonly attempts?: number;
    readonly backoff?: BackoffOptions;
  };
  /** An attempt that takes longer has failed: its signal fires. @default none */
  readonly timeout?: Duration;
  /** A job not started this long after it was due is recorded as expired. @default never */
  readonly expireIn?: Duration;
  /** The crash that makes it dead as poison. @default 3 */
  readonly maxCrashes?: number;
  /** How long its jobs are kept after their end, by state; it is stored with each job. @default the app's `retention` */
  readonly retention?: JobRetentionOptions;
  /** The handler; or the URL of a module whose default export is the handler, to run it in a thread. A process that only enqueues leaves it out. */
  readonly run?: Handler<Output, Result> | URL;
  /**
   * Where its jobs go when they are due, such as `kafka({ topic: "payments" })`: the relay publishes them, no local worker claims them,
   * and `run` is what a consumer runs. A publish that the broker acknowledged is the job's success.
   */
  readonly route?: Route;
}

/**
 * What {@link defineJob} returns: everything about a kind of job, resolved and frozen.
 *
 * The handler and the key functions are kept as taking `never`, so definitions of every input fit in one list; only code that has
 * validated the input against this very definition calls them.
 */
export interface JobDefinition<Input = never, Result = unknown> {
  readonly name: string;
  readonly schema: StandardSchemaV1 | null;
  readonly delivery: Delivery;
  readonly queue: string;
  readonly priority: number;
  readonly concurrency: { readonly key: KeyFunction | null; readonly limit: number } | null;
  readonly rate: (RateLimit & { readonly key: KeyFunction | null }) | null;
  readonly unique: { readonly key: KeyFunction; readonly forMs: number | null } | null;
  readonly debounce: {
    readonly key: KeyFunction;
    readonly waitMs: number;
    readonly maxMs: number | null;
  } | null;
  /** Null: the app's setting. */
  readonly attempts: number | null;
  readonly backoff: Backoff;
  readonly timeoutMs: number | null;
  readonly expireInMs: number | null;
  readonly maxCrashes: number | null;
  /** Null, as each of its times: the app's setting. */
  readonly retention: Retention | null;
  readonly run: ((context: HandlerContext<never>) => unknown) | URL | null;
  readonly route: Route | null;
  /** Carries the types of input and result; it has no value. */
  readonly "~types"?: { readonly input: (input: Input) => void; readonly result: Result };
}

export type KeyFunction = (input: never) => string;

/** Any definition, whatever its input. */
export type AnyDefinition = JobDefinition<never, unknown>;

/**
 * Defines a kind of job. Its input is typed, and validated by the schema when it is enqueued and again when it is claimed.
 *
 * @example
 * const invoice = defineJob({
 *   name: "invoice",
 *   input: z.object({ customer: z.string() }),
 *   run: async ({ input, signal }) => render(input.customer, { signal }),
 * });
 */
export function defineJob<S extends StandardSchemaV1, Result = unknown>(
  options: DefinitionOptions<StandardSchemaV1.InferOutput<S>, Result> & { readonly input: S },
): JobDefinition<StandardSchemaV1.InferInput<S>, Jsonified<Result>>;
/**
 * Without a schema the input is what the type says, unchecked. Declare it where the handler takes it, and the result is inferred, too:
 * `run: async ({ input }: HandlerContext<{ customer: string }>) => …`; in `defineJob<{ customer: string }>({ … })` it is unknown.
 */
export function defineJob<Input, Result = unknown>(
  options: DefinitionOptions<Input, Result> & WithoutSchema<Input>,
): JobDefinition<Input, Jsonified<Result>>;
export function defineJob(
  options: DefinitionOptions<never, unknown> & { readonly input?: StandardSchemaV1 | undefined },
): AnyDefinition {
  checkKnown(options, definitionKeys, "defineJob");
  const name = checkName(options.name, "the name of a job");
  const of = (option: string): string => `${option} of job ${JSON.stringify(name)}`;
  if (options.unique !== undefined && options.debounce !== undefined) {
    throw new EscapementError(
      "invalid-option",
      `${of("unique")} and debounce are mutually exclusive; use one of them`,
    );
  }
  if (options.route !== undefined) checkRouted(options, of);
  return Object.freeze({
    name,
    schema: checkSchema(options.input, of("input")),
    delivery: checkOneOf(options.delivery ?? "at-least-once", deliveries, of("delivery")),
    queue: checkName(options.queue ?? "default", of("queue")),
    priority: checkPriority(options.priority ?? 0, of("priority")),
    concurrency: resolveConcurrency(options.concurrency, of),
    rate: resolveRate(options.rate, of),
    unique: resolveUnique(options.unique, of),
    debounce: resolveDebounce(options.debounce, of),
    ...resolveRetry(options.retry, of),
    timeoutMs:
      options.timeout === undefined
        ? null
        : checkNumber(
            parseDuration(options.timeout, of("timeout")),
            1,
            Number.MAX_SAFE_INTEGER,
            of("timeout"),
          ),
    expireInMs: optionalDuration(options.expireIn, of("expireIn")),
    maxCrashes:
      options.maxCrashes === undefined ? null : checkInteger(options.maxCrashes, 1, 1_000, of("maxCrashes")),
    retention: resolveJobRetention(options.retention, of),
    run: checkRun(options.run, of("run")),
    route: checkRoute(options.route, of("route")),
  } satisfies AnyDefinition);
}

/** Refuses to compile an input that would not arrive as declared. */
type WithoutSchema<Input> = [Input] extends [JsonSafe<Input>]
  ? { readonly input?: undefined }
  : { readonly input: NotJson };

const definitionKeys = [
  "name",
  "input",
  "delivery",
  "queue",
  "priority",
  "concurrency",
  "rate",
  "unique",
  "debounce",
  "retry",
  "timeout",
  "expireIn",
  "maxCrashes",
  "retention",
  "run",
  "route",
] as const;

type Of = (option: string) => string;

export function checkPriority(value: unknown, option: string): number {
  return checkInteger(value, -1_000_000, 1_000_000, option);
}

function resolveConcurrency(
  options: DefinitionOptions<never, unknown>["concurrency"],
  of: Of,
): AnyDefinition["concurrency"] {
  if (options === undefined) return null;
  checkKnown(options, ["key", "limit"], of("concurrency"));
  return {
    key: options.key === undefined ? null : checkFunction(options.key, of("concurrency.key")),
    limit: checkInteger(options.limit, 1, 1_000_000, of("concurrency.limit")),
  };
}

function resolveRate(options: DefinitionOptions<never, unknown>["rate"], of: Of): AnyDefinition["rate"] {
  if (options === undefined) return null;
  checkKnown(options, ["key", "limit", "per"], of("rate"));
  return {
    key: options.key === undefined ? null : checkFunction(options.key, of("rate.key")),
    limit: checkInteger(options.limit, 1, 1_000_000_000, of("rate.limit")),
    perMs: checkNumber(
      parseDuration(options.per, of("rate.per")),
      1,
      Number.MAX_SAFE_INTEGER,
      of("rate.per"),
    ),
  };
}

function resolveUnique(
  options: DefinitionOptions<never, unknown>["unique"],
  of: Of,
): AnyDefinition["unique"] {
  if (options === undefined) return null;
  checkKnown(options, ["key", "for"], of("unique"));
  return {
    key: checkFunction(options.key, of("unique.key")),
    forMs:
      options.for === "pending"
        ? null
        : checkNumber(
            parseDuration(options.for, of("unique.for")),
            1,
            Number.MAX_SAFE_INTEGER,
            of("unique.for"),
          ),
  };
}

function resolveDebounce(
  options: DefinitionOptions<never, unknown>["debounce"],
  of: Of,
): AnyDefinition["debounce"] {
  if (options === undefined) return null;
  checkKnown(options, ["key", "wait", "max"], of("debounce"));
  const waitMs = parseDuration(options.wait, of("debounce.wait"));
  const maxMs = optionalDuration(options.max, of("debounce.max"));
  if (maxMs !== null && maxMs < waitMs) {
    throw new EscapementError(
      "invalid-option",
      `expected ${of("debounce.max")} to be at least debounce.wait (${waitMs}), got ${maxMs}`,
    );
  }
  return {
    key: checkFunction(options.key, of("debounce.key")),
    waitMs,
    maxMs,
  };
}

function resolveRetry(
  options: DefinitionOptions<never, unknown>["retry"],
  of: Of,
): Pick<AnyDefinition, "attempts" | "backoff"> {
  checkKnown(options ?? {}, ["attempts", "backoff"], of("retry"));
  const backoff = options?.backoff ?? {};
  checkKnown(backoff, ["type", "delay", "max", "jitter"], of("retry.backoff"));
  const delayMs = parseDuration(backoff.delay ?? defaultBackoff.delayMs, of("retry.backoff.delay"));
  const maxMs = parseDuration(
    backoff.max ?? Math.max(defaultBackoff.maxMs, delayMs),
    of("retry.backoff.max"),
  );
  if (maxMs < delayMs) {
    throw new EscapementError(
      "invalid-option",
      `expected ${of("retry.backoff.max")} to be at least retry.backoff.delay (${delayMs}), got ${maxMs}`,
    );
  }
  return {
    attempts:
      options?.attempts === undefined ? null : checkInteger(options.attempts, 1, 1_000, of("retry.attempts")),
    backoff: {
      type: checkOneOf(
        backoff.type ?? defaultBackoff.type,
        ["exponential", "fixed"],
        of("retry.backoff.type"),
      ),
      delayMs,
      maxMs,
      jitter: checkNumber(backoff.jitter ?? defaultBackoff.jitter, 0, 1, of("retry.backoff.jitter")),
    },
  };
}

function optionalDuration(value: unknown, option: string): number | null {
  return value === undefined ? null : parseDuration(value, option);
}

function checkFunction(value: unknown, option: string): KeyFunction {
  if (typeof value !== "function") {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be a function of the input, got ${describe(value)}`,
    );
  }
  return value as KeyFunction;
}

function checkSchema(value: unknown, option: string): StandardSchemaV1 | null {
  if (value === undefined) return null;
  const isSchema =
    (typeof value === "object" || typeof value === "function") && value !== null && "~standard" in value;
  if (!isSchema) {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be a Standard Schema (zod, valibot, arktype …), got ${describe(value)}`,
    );
  }
  return value as StandardSchemaV1;
}

function checkRun(value: unknown, option: string): AnyDefinition["run"] {
  if (value === undefined) return null;
  if (typeof value !== "function" && !(value instanceof URL)) {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be a function or the URL of a module, got ${describe(value)}`,
    );
  }
  return value as AnyDefinition["run"];
}

/** A routed job passes every limit, so a limit that would not be enforced is refused. */
function checkRouted({ concurrency, rate }: DefinitionOptions<never, unknown>, of: Of): void {
  const limit = rate !== undefined ? "rate" : concurrency?.key === undefined ? "concurrency" : null;
  if (limit === null || (limit === "concurrency" && concurrency === undefined)) return;
  throw new EscapementError(
    "invalid-option",
    `expected ${of("route")} to be used without ${limit === "rate" ? "rate" : "a concurrency that has no key"}: the relay applies no limits; limit the consumers instead`,
  );
}

function checkRoute(route: Route | undefined, option: string): Route | null {
  if (route === undefined) return null;
  const isRoute =
    typeof route === "object" &&
    typeof route?.transport?.open === "function" &&
    typeof route.destination === "string" &&
    route.destination !== "";
  if (!isRoute) {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be what kafka(), nats(), redisStreams() or http() returns, got ${describe(route)}`,
    );
  }
  checkNumber(route.dispatchTimeoutMs, 1, Number.MAX_SAFE_INTEGER, `the dispatchTimeout of ${option}`);
  return route;
}
