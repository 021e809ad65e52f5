import type { AnyDefinition } from "../definition.ts";
import { EscapementError } from "../errors.ts";
import type { Inbox } from "../inbox/inbox.ts";
import { consoleLogger, type Logger } from "../log.ts";
import type { MessageFacts } from "../message.ts";
import { checkInteger, checkKnown } from "../options.ts";
import { type MetricsOptions, type MetricsSettings, resolveMetrics } from "../settings.ts";
import type { ReceivedMessage, Source } from "../source.ts";
import type { Route } from "../transport.ts";

/** A message that will not be tried again. */
export interface DeadMessage {
  readonly message: ReceivedMessage;
  /** What its headers said of its job; null when they could not be read. */
  readonly facts: MessageFacts | null;
  readonly error: unknown;
  /** How often it was tried, as far as is known. */
  readonly tries: number;
}

/** What every consumer needs. */
export interface HandlerOptions {
  /** The definitions whose handlers run here, the same ones that the sender enqueues by. */
  readonly jobs: readonly AnyDefinition[];
  /** Keeps a second copy of a message from taking effect. Effectively-once jobs need an SQL one. It stays yours to close. */
  readonly inbox: Inbox;
  /** Tries of a job whose definition does not say. @default 5 */
  readonly attempts?: number;
  /** @default warnings and errors to the console */
  readonly log?: Logger;
}

export interface ConsumeOptions extends HandlerOptions {
  /** Where messages come from: `kafkaSource(…)`, `natsSource(…)`, `redisStreamsSource(…)`. */
  readonly from: Source;
  /** Handlers at a time. @default 10 */
  readonly concurrency?: number;
  /** Messages in hand at a time, those included that wait here for their next try. @default ten times `concurrency` */
  readonly maxInHand?: number;
  /** Where messages go that used up their tries or cannot be understood; with the error in their headers. */
  readonly deadLetter?: Route;
  /** Called with such a message instead; it is acknowledged once this has returned, and called again when it throws. */
  readonly onDead?: (dead: DeadMessage) => void | Promise<void>;
  /** Counts for Prometheus, asked for by `consumer.metrics()`, or at a port. Needs the package prom-client. @default false */
  readonly metrics?: boolean | MetricsOptions;
}

export interface ResolvedHandlerOptions {
  readonly definitions: ReadonlyMap<string, AnyDefinition>;
  readonly inbox: Inbox;
  readonly attempts: number;
  readonly log: Logger;
}

export interface ResolvedConsumeOptions extends ResolvedHandlerOptions {
  readonly from: Source;
  readonly concurrency: number;
  readonly maxInHand: number;
  readonly deadLetter: Route | null;
  readonly onDead: ConsumeOptions["onDead"] | null;
  readonly metrics: MetricsSettings | null;
}

export const handlerKeys = ["jobs", "inbox", "attempts", "log"];

export function resolveConsumeOptions(options: ConsumeOptions): ResolvedConsumeOptions {
  const known = [...handlerKeys, "from", "concurrency", "maxInHand", "deadLetter", "onDead", "metrics"];
  checkKnown(options, known, "consume");
  if ((options.deadLetter === undefined) === (options.onDead === undefined)) {
    throw new EscapementError(
      "invalid-option",
      "expected consume to be given one of deadLetter and onDead: a message that used up its tries has to go somewhere",
    );
  }
  const concurrency = checkInteger(options.concurrency ?? 10, 1, 10_000, "concurrency of consume");
  return {
    ...resolveHandlerOptions(options, "consume"),
    from: options.from,
    concurrency,
    maxInHand: checkInteger(
      options.maxInHand ?? concurrency * 10,
      concurrency,
      1_000_000,
      "maxInHand of consume",
    ),
    deadLetter: options.deadLetter ?? null,
    onDead: options.onDead ?? null,
    metrics: resolveMetrics(options.metrics ?? false),
  };
}

export function resolveHandlerOptions(options: HandlerOptions, what: string): ResolvedHandlerOptions {
  const { jobs, inbox } = options;
  const definitions = new Map<string, AnyDefinition>();
  for (const definition of jobs) {
    const name = JSON.stringify(definition.name);
    if (definition.run === null) {
      throw new EscapementError(
        "invalid-option",
        `job ${name} has no handler; ${what} runs handlers, so give it \`run\``,
      );
    }
    if (definitions.has(definition.name))
      throw new EscapementError("duplicate-definition", `job ${name} is defined twice in ${what}`);
    if (definition.delivery === "effectively-once" && !inbox.atomic) {
      throw new EscapementError(
        "delivery-unsupported",
        `job ${name} is effectively-once, which needs an inbox whose marker commits with the effect: sqliteInbox, postgresInbox or mysqlInbox`,
      );
    }
    definitions.set(definition.name, definition);
  }
  return {
    definitions,
    inbox,
    attempts: checkInteger(options.attempts ?? 5, 1, 1_000, `attempts of ${what}`),
    log: options.log ?? consoleLogger,
  };
}
