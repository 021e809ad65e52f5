import type { Msg, MsgHdrs, NatsConnection, Status } from "@nats-io/transport-node";
import { acknowledged, ambiguous, refused, textOf } from "../../message/publish-result.ts";
import type { PublishResult } from "../../message/transport.ts";

interface Waiting {
  readonly subject: string;
  resolve(result: PublishResult): void;
}

/** A sent message, and its future result. */
export interface Sent {
  readonly result: Promise<PublishResult>;
  /** Ends the wait for an answer. */
  giveUp(): void;
}

/**
 * Publishes on one connection and matches acknowledgements to messages. The client's own `publish` would do the same with a timer for
 * each message, which costs more than the rest.
 */
export class Publisher {
  readonly #connection: NatsConnection;
  readonly #where: string;
  readonly #inbox: string;
  readonly #waiting = new Map<string, Waiting>();
  #count = 0;
  #over: PublishResult | null = null;

  constructor(connection: NatsConnection, where: string) {
    this.#connection = connection;
    this.#where = where;
    this.#inbox = `_INBOX.escapement.${crypto.randomUUID().replaceAll("-", "")}.`;
    connection.subscribe(`${this.#inbox}*`, {
      callback: (error, answer) => {
        if (error === null) this.#settle(answer.subject.slice(this.#inbox.length), judge(answer, where));
      },
    });
    void connection.closed().then((error) => this.#end(error ?? new Error("the connection was closed")));
    void this.#watch(connection.status());
  }

  send(subject: string, body: string, headers: MsgHdrs): Sent {
    if (this.#over !== null) {
      const result = refused(`NATS ${this.#where}: the connection was closed`);
      return { result: Promise.resolve(result), giveUp() {} };
    }
    const token = (this.#count++).toString(36);
    const { promise, resolve } = Promise.withResolvers<PublishResult>();
    this.#waiting.set(token, { subject, resolve });
    try {
      this.#connection.publish(subject, body, { reply: `${this.#inbox}${token}`, headers });
    } catch (error) {
      // It only throws before it sends.
      const permanent = error instanceof Error && error.name === "InvalidArgumentError";
      this.#settle(token, refused(`NATS ${this.#where}: ${textOf(error)}`, { cause: error, permanent }));
    }
    const giveUp = (): void =>
      this.#settle(token, ambiguous(`NATS ${this.#where}: no acknowledgement in time`));
    return { result: promise, giveUp };
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  #settle(token: string, result: PublishResult): void {
    const waiting = this.#waiting.get(token);
    this.#waiting.delete(token);
    waiting?.resolve(result);
  }

  #end(error: Error): void {
    this.#over = ambiguous(`NATS ${this.#where}: the connection broke: ${textOf(error)}`, error);
    for (const token of [...this.#waiting.keys()]) this.#settle(token, this.#over);
  }

  /** A forbidden publish gets no answer, only an error about its subject. */
  async #watch(statuses: AsyncIterable<Status>): Promise<void> {
    for await (const status of statuses) {
      if (status.type !== "error" || status.error.name !== "PermissionViolationError") continue;
      const { operation, subject } = status.error as Error & { operation?: string; subject?: string };
      if (operation !== "publish") continue;
      const result = refused(`NATS ${this.#where}: ${textOf(status.error)}`, { permanent: true });
      for (const [token, waiting] of [...this.#waiting]) {
        if (waiting.subject === subject) this.#settle(token, result);
      }
    }
  }
}

interface Acknowledgement {
  readonly stream?: string;
  readonly error?: { readonly code?: number; readonly err_code?: number; readonly description?: string };
}

/** JetStream's error codes for a message that is larger than the stream accepts. */
const tooLarge = [10054, 10097];

function judge(answer: Msg, where: string): PublishResult {
  if (answer.headers?.code === 503) {
    return refused(
      `NATS ${where}: no stream listens to this subject; make one with the subject among its subjects, and check that JetStream is on`,
    );
  }
  try {
    const { stream, error } = answer.json<Acknowledgement>();
    if (error !== undefined) {
      const permanent = tooLarge.includes(error.err_code ?? 0);
      return refused(`NATS ${where}: ${error.description ?? "the stream refused it"}`, { permanent });
    }
    if (typeof stream === "string" && stream !== "") return acknowledged;
  } catch (error) {
    return ambiguous(`NATS ${where}: the acknowledgement cannot be read`, error);
  }
  return ambiguous(
    `NATS ${where}: something other than a stream answered; check who else listens to this subject`,
  );
}
