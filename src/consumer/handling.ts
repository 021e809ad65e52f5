import { hash } from "node:crypto";
import type { Clock } from "../clock.ts";
import type { AnyDefinition } from "../definition.ts";
import type { TransactionJobs } from "../enqueue.ts";
import { EscapementError } from "../errors.ts";
import type { HandlerContext } from "../handler.ts";
import type { InboxHold } from "../inbox/hold.ts";
import type { Inbox } from "../inbox/inbox.ts";
import type { Logger } from "../log.ts";
import { readFacts } from "../message/facts.ts";
import type { MessageFacts } from "../message/message.ts";
import type { ReceivedMessage } from "../message/source.ts";
import type { ConsumerFigures } from "../observe/consumer-figures.ts";
import type { Dispatcher, Ended } from "./dispatch.ts";
import { noStore } from "./no-store.ts";

/** The result of one attempt at a message. */
export type Handled =
  | { readonly kind: "handled" }
  | { readonly kind: "duplicate" }
  /** Another copy is being handled, or the inbox cannot be reached: it uses up no attempt. */
  | { readonly kind: "busy"; readonly by: "copy" | "inbox"; readonly retryInMs: number }
  | { readonly kind: "snoozed"; readonly delayMs: number }
  | { readonly kind: "interrupted" }
  | { readonly kind: "failed"; readonly error: unknown }
  /** Retrying is pointless. `buried`, if present, must be called once the message was put away, or could not be. */
  | { readonly kind: "dead"; readonly error: unknown; readonly buried?: Buried };

type Buried = (isBuried: boolean) => Promise<void>;

export interface HandlingParts {
  readonly definitions: ReadonlyMap<string, AnyDefinition>;
  readonly attempts: number;
  readonly inbox: Inbox;
  /** Null: all of them. */
  readonly namespaces: ReadonlySet<string> | null;
  readonly dispatcher: Dispatcher;
  readonly log: Logger;
  readonly clock: Clock;
  /** Null if nothing is counted. */
  readonly figures: ConsumerFigures | null;
}

/** One attempt at a message. */
export interface Attempt {
  /** The number of this attempt, 1 for the first. */
  readonly attempt: number;
  /** Whether no handler has been started for it before, as far as is known. */
  readonly isFirst: boolean;
  /** When the message arrived, by the clock of this process. */
  readonly receivedAt: number;
  readonly stopped: AbortSignal;
}

const busyCopy = { kind: "busy", by: "copy" } as const;

/** How long to wait before asking an inbox that failed again. */
const troubleMs = 1_000;

/** A message whose headers and name were understood. */
export interface Understood {
  readonly facts: MessageFacts;
  readonly definition: AnyDefinition;
  readonly attempts: number;
}

/** Takes messages through the inbox to the handlers of their definitions. */
export class Handling {
  readonly #parts: HandlingParts;

  constructor(parts: HandlingParts) {
    this.#parts = parts;
  }

  /**
   * Whether a message belongs to another namespace that shares the broker: then it is not for this consumer, whatever else is in it. One that
   * names no namespace is ours to put away.
   */
  isOtherNamespace(message: ReceivedMessage): boolean {
    const { namespaces } = this.#parts;
    const namespace = message.headers["escapement-namespace"];
    if (namespaces === null || namespace === undefined || namespace === "") return false;
    try {
      return !namespaces.has(decodeURIComponent(namespace));
    } catch {
      return false;
    }
  }

  /** @throws EscapementError `invalid-message` or `unknown-job`: no later attempt will understand it either. */
  understand(message: ReceivedMessage): Understood {
    const facts = readFacts(message.headers);
    const definition = this.#parts.definitions.get(facts.name);
    if (definition === undefined) {
      throw new EscapementError(
        "unknown-job",
        `this consumer has no definition of the job ${JSON.stringify(facts.name)}`,
      );
    }
    return { facts, definition, attempts: definition.attempts ?? this.#parts.attempts };
  }

  /** One attempt. It never rejects. */
  async handle(message: ReceivedMessage, understood: Understood, one: Attempt): Promise<Handled> {
    const { figures, clock, dispatcher, inbox } = this.#parts;
    const { facts } = understood;
    let startedAtMs: number | null = null;
    const run = (tx: HandlerContext<unknown>["tx"], lost: AbortSignal | null): Promise<Ended> => {
      startedAtMs = clock.monotonic();
      if (one.isFirst) figures?.started({ ...facts, receivedAt: one.receivedAt }, clock.now());
      const { attempt, stopped } = one;
      const graceMs = inbox.leaseMs;
      return dispatcher.run({ ...understood, body: message.body, attempt, tx, stopped, lost, graceMs });
    };
    const handled = await this.#attempt(understood, run);
    const isLast = handled.kind === "failed" && one.attempt >= understood.attempts;
    figures?.ended(
      facts.name,
      isLast ? "dead" : handled.kind,
      startedAtMs === null ? null : clock.monotonic() - startedAtMs,
    );
    return handled;
  }

  async #attempt(understood: Understood, run: RunHandler): Promise<Handled> {
    try {
      return understood.facts.delivery === "at-most-once"
        ? await this.#once(understood, run)
        : await this.#guarded(understood, run);
    } catch (error) {
      // What the inbox cannot do now, it may do later; the message is not at fault.
      this.#parts.log.error({ error, id: understood.facts.id }, "the inbox failed; the message is retried");
      return { kind: "busy", by: "inbox", retryInMs: troubleMs };
    }
  }

  /** The key is taken before the handler starts, and marked when it has ended: a copy that finds it taken and not marked never starts. */
  async #once({ facts }: Understood, run: RunHandler): Promise<Handled> {
    const held = await this.#parts.inbox.hold({ key: onceKey(facts) });
    if (held.outcome === "duplicate") return { kind: "duplicate" };
    if (held.outcome === "busy") return { ...busyCopy, retryInMs: held.retryInMs };
    const { hold } = held;
    // Dead ones are marked when they are put away: until then they must be found again.
    const buried: Buried = async (isBuried) => (isBuried ? this.#mark(hold, facts.id) : hold.abandon());
    if (!hold.isFirst) {
      const text =
        "lost: an earlier delivery of this at-most-once job was started, and its outcome is unknown";
      return { kind: "dead", error: new EscapementError("job-failed", text), buried };
    }
    const ended = await run(noTransaction, null);
    if (ended.kind === "returned") {
      await this.#mark(hold, facts.id);
      return { kind: "handled" };
    }
    if (ended.kind === "snoozed") {
      const text = "an at-most-once job cannot be snoozed once it has started";
      return { kind: "dead", error: new EscapementError("delivery-unsupported", text), buried };
    }
    return { kind: "dead", error: ended.error, buried };
  }

  /** If it cannot be marked, a later copy is reported as lost. */
  async #mark(hold: InboxHold, id: string): Promise<void> {
    try {
      await hold.finish();
    } catch (error) {
      hold.abandon();
      this.#parts.log.warn({ error, id }, "the outcome of an at-most-once job could not be marked");
    }
  }

  async #guarded({ facts }: Understood, run: RunHandler): Promise<Handled> {
    const held = await this.#parts.inbox.hold({ key: facts.idempotencyKey });
    if (held.outcome === "duplicate") return { kind: "duplicate" };
    if (held.outcome === "busy") return { ...busyCopy, retryInMs: held.retryInMs };
    const { hold } = held;
    const transaction = new MessageTransaction(hold, facts.id);
    const ended = await run(transaction.run, hold.lost);
    transaction.close();
    if (transaction.isCommitted) {
      if (ended.kind === "threw")
        this.#parts.log.warn({ error: ended.error, id: facts.id }, "a handler failed after it had committed");
      return { kind: "handled" };
    }
    // A commit that an abandoned handler had in flight may have come first: the next attempt sees it.
    if (ended.kind !== "returned" && !(await hold.release())) return { ...busyCopy, retryInMs: troubleMs };
    switch (ended.kind) {
      case "returned":
        return this.#finish(hold);
      case "snoozed":
        return { kind: "snoozed", delayMs: ended.delayMs };
      case "interrupted":
        return { kind: "interrupted" };
      case "threw":
        return ended.isPointless
          ? { kind: "dead", error: ended.error }
          : { kind: "failed", error: ended.error };
    }
  }

  async #finish(hold: InboxHold): Promise<Handled> {
    try {
      await hold.finish();
      return { kind: "handled" };
    } catch (error) {
      await hold.release();
      if (!(error instanceof EscapementError) || error.code !== "stale-claim") throw error;
      // The process that took over is done, or will be; the next attempt sees it.
      return { ...busyCopy, retryInMs: troubleMs };
    }
  }
}

/** Each redrive of an at-most-once job is a person's permission to start it once more. */
function onceKey({ idempotencyKey, redrives }: MessageFacts): string {
  return redrives === 0 ? idempotencyKey : hash("sha256", `${idempotencyKey}\n${redrives}`);
}

type RunHandler = (tx: HandlerContext<unknown>["tx"], lost: AbortSignal | null) => Promise<Ended>;

function noTransaction(): never {
  throw new EscapementError(
    "transaction-unavailable",
    "tx is not available to an at-most-once job: its key was taken before it started, and nothing is rolled back",
  );
}

/** The handler's `tx`: its writes commit together with the marker, once. */
class MessageTransaction {
  readonly #hold: InboxHold;
  readonly #id: string;
  #isUsed = false;
  #isOver = false;
  isCommitted = false;

  constructor(hold: InboxHold, id: string) {
    this.#hold = hold;
    this.#id = id;
  }

  /** A handler that was given up may write no more. */
  close(): void {
    this.#isOver = true;
  }

  run = async <T, Db>(fn: (db: Db, jobs: TransactionJobs) => T): Promise<Awaited<T>> => {
    if (this.#isOver) {
      const text = `the message of job ${JSON.stringify(this.#id)} was given up; nothing is written for it any more`;
      throw new EscapementError("stale-claim", text);
    }
    if (this.#isUsed) {
      throw new EscapementError(
        "transaction-used",
        `job ${JSON.stringify(this.#id)} has already called tx; it commits with the message's marker, so there can be only one`,
      );
    }
    this.#isUsed = true;
    try {
      const value = await this.#hold.commit<T, Db>((db) => fn(db, noStore));
      this.isCommitted = true;
      return value;
    } catch (error) {
      this.#isUsed = false;
      throw error;
    }
  };
}
