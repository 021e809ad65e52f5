import type { AnyDefinition } from "../definition.ts";
import { describe, EscapementError } from "../errors.ts";
import type { Inbox } from "../inbox/inbox.ts";
import { consoleLogger, type Logger } from "../log.ts";
import type { MessageFacts } from "../message/message.ts";
import type { ReceivedMessage, Source } from "../message/source.ts";
import type { Route } from "../message/transport.ts";
import { checkInteger, checkKnown, checkLogger, checkOneOf, checkTexts, kindOf } from "../options.ts";
import { type MetricsOptions, type MetricsSettings, resolveMetrics } from "../settings.ts";
import { type Around, checkMiddleware, composeMiddleware, type Middleware } from "../telemetry/middleware.ts";
import { checkTelemetry, type Telemetry } from "../telemetry/telemetry.ts";

/** A message that will not be retried. */
export interface DeadMessage {
  readonly message: ReceivedMessage;
  /** What its headers said about its job; null when they could not be read. */
  readonly facts: MessageFacts | null;
  readonly error: unknown;
  /** How often it was tried, as far as is known. */
  readonly tries: number;
  /** Where the broker keeps it: `topic payments, partition 3, offset 17`. */
  readonly position: string;
}

/** What every consumer needs. */
export interface HandlerOptions {
  /** The definitions whose handlers run here, the same ones that the sender enqueues with. */
  readonly jobs: readonly AnyDefinition[];
  /** Keeps a second copy of a message from taking effect. Effectively-once jobs need an SQL one. You must close it yourself. */
  readonly inbox: Inbox;
  /**
   * The namespaces whose jobs run here. Messages of other namespaces on the same topic, stream or endpoint are skipped: acknowledged without
   * being handled, put away or named in metrics; at an endpoint they are refused. Give each namespace its own consumer group.
   *
   * @default all of them
   */
  readonly namespace?: string | readonly string[];
  /** Attempts of a job whose definition sets none. @default 5 */
  readonly attempts?: number;
  /** What runs around every handler, the first outermost. @default nothing */
  readonly middleware?: readonly Middleware[];
  /** Traces what runs here: `openTelemetry()` of `escapement/opentelemetry`. @default none */
  readonly telemetry?: Telemetry;
  /** @default warnings and errors to the console */
  readonly log?: Logger;
}

export interface ConsumeOptions extends HandlerOptions {
  /** Where messages come from: `kafkaSource(…)`, `natsSource(…)`, `redisStreamsSource(…)`. */
  readonly from: Source;
  /** Concurrent handlers. @default 10 */
  readonly concurrency?: number;
  /** Maximum number of messages in hand, including those that wait here for their next attempt. @default ten times `concurrency` */
  readonly maxInHand?: number;
  /** Where messages go that used up their attempts or cannot be understood, with the error in their headers. */
  readonly deadLetter?: Route;
  /**
   * Called with such a message instead; it is acknowledged once this has returned. If it throws, it is called again, for ten minutes at
   * most; an `UnrecoverableError` says that it will never accept this message.
   */
  readonly onDead?: (dead: DeadMessage) => void | Promise<void>;
  /**
   * What happens to a dead message that `deadLetter` or `onDead` refuses for good; either way it is logged as an error and counted.
   * `drop`: it is not redelivered; the log says where the broker keeps it, for as long as it does. `keep`: it is not acknowledged, so
   * it is redelivered later; many of them hold up the broker's consumer (see docs/TRANSPORTS.md).
   *
   * @default "drop"
   */
  readonly onBurialRefused?: "drop" | "keep";
  /** Counts for Prometheus, read with `consumer.metrics()`, or served on a port. Needs the package prom-client. @default false */
  readonly metrics?: boolean | MetricsOptions;
}

export interface ResolvedHandlerOptions {
  readonly definitions: ReadonlyMap<string, AnyDefinition>;
  readonly inbox: Inbox;
  /** Null: all of them. */
  readonly namespaces: ReadonlySet<string> | null;
  readonly attempts: number;
  /** What runs around handlers; null: nothing. */
  readonly around: Around | null;
  readonly log: Logger;
}

export interface ResolvedConsumeOptions extends ResolvedHandlerOptions {
  readonly from: Source;
  readonly concurrency: number;
  readonly maxInHand: number;
  readonly deadLetter: Route | null;
  readonly onDead: ConsumeOptions["onDead"] | null;
  readonly onBurialRefused: "drop" | "keep";
  readonly metrics: MetricsSettings | null;
}

export const handlerKeys = ["jobs", "inbox", "namespace", "attempts", "middleware", "telemetry", "log"];

const consumeKeys = [
  ...handlerKeys,
  "from",
  "concurrency",
  "maxInHand",
  "deadLetter",
  "onDead",
  "onBurialRefused",
  "metrics",
];

export function resolveConsumeOptions(options: ConsumeOptions): ResolvedConsumeOptions {
  checkKnown(options, consumeKeys, "consume");
  if ((options.deadLetter === undefined) === (options.onDead === undefined)) {
    throw new EscapementError(
      "invalid-option",
      "expected consume to get either deadLetter or onDead: a message that used up its attempts must go somewhere",
    );
  }
  // Defaults are here and not behind `??`, so null is refused like any other invalid value.
  const { deadLetter, onDead, onBurialRefused = "drop", metrics = false, concurrency = 10 } = options;
  checkInteger(concurrency, 1, 10_000, "concurrency of consume");
  const { maxInHand = concurrency * 10 } = options;
  const from = checkSource(options.from);
  return {
    ...resolveHandlerOptions(options, "consume"),
    from,
    concurrency,
    maxInHand: checkInteger(maxInHand, concurrency, 1_000_000, "maxInHand of consume"),
    deadLetter: deadLetter === undefined ? null : checkDeadLetter(deadLetter, from),
    onDead: onDead === undefined ? null : checkOnDead(onDead),
    onBurialRefused: checkOneOf(onBurialRefused, ["drop", "keep"], "onBurialRefused of consume"),
    metrics: resolveMetrics(metrics),
  };
}

export function resolveHandlerOptions(options: HandlerOptions, what: string): ResolvedHandlerOptions {
  const { jobs, inbox, namespace, attempts = 5, middleware = [], telemetry, log = consoleLogger } = options;
  const definitions = new Map<string, AnyDefinition>();
  for (const definition of checkJobs(jobs, what)) {
    const name = JSON.stringify(definition.name);
    if (definition.run === null) {
      throw new EscapementError(
        "invalid-option",
        `job ${name} has no handler; ${what} runs handlers, so give it \`run\``,
      );
    }
    if (definitions.has(definition.name))
      throw new EscapementError("duplicate-definition", `job ${name} is defined twice in ${what}`);
    if (definition.delivery === "effectively-once" && fieldsOf(inbox)["atomic"] === false) {
      throw new EscapementError(
        "delivery-unsupported",
        `job ${name} is effectively-once, which needs an inbox whose marker commits with the effect: sqliteInbox, postgresInbox or mysqlInbox`,
      );
    }
    definitions.set(definition.name, definition);
  }
  return {
    definitions,
    inbox: checkInbox(inbox, what),
    namespaces: namespace === undefined ? null : new Set(checkTexts(namespace, `namespace of ${what}`)),
    attempts: checkInteger(attempts, 1, 1_000, `attempts of ${what}`),
    around: composeMiddleware([
      ...(telemetry === undefined ? [] : [checkTelemetry(telemetry, `telemetry of ${what}`).middleware]),
      ...checkMiddleware(middleware, `middleware of ${what}`),
    ]),
    log: checkLogger(log, `log of ${what}`),
  };
}

function checkJobs(jobs: unknown, what: string): readonly AnyDefinition[] {
  const isDefinition = (one: unknown): boolean => "backoff" in fieldsOf(one);
  if (Array.isArray(jobs) && jobs.every(isDefinition)) return jobs;
  const got = Array.isArray(jobs)
    ? `a list with ${kindOf(jobs.find((one) => !isDefinition(one)))} in it`
    : kindOf(jobs);
  throw new EscapementError(
    "invalid-option",
    `expected jobs of ${what} to be a list of what defineJob returns, such as [payment], got ${got}`,
  );
}

/** Recognised by its methods, not by its class: it may come from another copy of this package. */
function checkInbox(inbox: unknown, what: string): Inbox {
  const { hold, atomic, begin } = fieldsOf(inbox);
  if (typeof hold === "function" && typeof atomic === "boolean") return inbox as Inbox;
  const got = typeof begin === "function" ? "the store without createInbox around it" : kindOf(inbox);
  throw new EscapementError(
    "invalid-option",
    `expected inbox of ${what} to be what createInbox({ store: sqliteInbox(…) }) returns, got ${got}`,
  );
}

/** Which source reads what a route publishes. */
const sources: Readonly<Record<string, string>> = {
  kafka: "kafkaSource({ topic, group })",
  nats: "natsSource({ stream, consumer })",
  "redis-streams": "redisStreamsSource({ stream, group })",
  http: "httpEndpoint({ … }) instead of consume",
};

const routes: Readonly<Record<string, string>> = {
  kafka: "kafka({ topic })",
  nats: "nats({ subject })",
  "redis-streams": "redisStreams({ stream })",
};

function checkSource(from: unknown): Source {
  if (isSource(from)) return from;
  const { transport } = fieldsOf(from);
  const kind = String(fieldsOf(transport)["kind"]);
  const got =
    transport === undefined
      ? kindOf(from)
      : `a route, which only publishes; write ${sources[kind] ?? "the source of its broker"}`;
  throw new EscapementError(
    "invalid-option",
    `expected from of consume to be what kafkaSource(…), natsSource(…) or redisStreamsSource(…) returns, got ${got}`,
  );
}

function checkDeadLetter(given: unknown, from: Source): Route {
  const route = checkRoute(given);
  if (!from.reads?.(route)) return route;
  throw new EscapementError(
    "invalid-option",
    `expected deadLetter of consume to be a different place from what is consumed, got ${route.transport.kind} ${describe(route.destination)} for both: a dead message would come back and die again, forever`,
  );
}

function checkRoute(route: unknown): Route {
  const { transport, destination, dispatchTimeoutMs } = fieldsOf(route);
  const isRoute =
    typeof fieldsOf(transport)["open"] === "function" &&
    typeof destination === "string" &&
    destination !== "";
  if (isRoute && typeof dispatchTimeoutMs === "number" && dispatchTimeoutMs >= 1) return route as Route;
  const got = isSource(route)
    ? `a source, which only reads; write ${routes[route.kind] ?? "the route of its broker"}`
    : kindOf(route);
  throw new EscapementError(
    "invalid-option",
    `expected deadLetter of consume to be what kafka(…), nats(…), redisStreams(…) or http(…) returns, got ${got}`,
  );
}

function checkOnDead(onDead: unknown): NonNullable<ConsumeOptions["onDead"]> {
  if (typeof onDead === "function") return onDead as NonNullable<ConsumeOptions["onDead"]>;
  throw new EscapementError(
    "invalid-option",
    `expected onDead of consume to be a function of the dead message, got ${kindOf(onDead)}`,
  );
}

function isSource(value: unknown): value is Source {
  const { kind, open } = fieldsOf(value);
  return typeof kind === "string" && typeof open === "function";
}

/** Any value, as an object whose fields can be read. */
function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
