/**
 * The contract of a transport: where the relay publishes due jobs. Each passes one conformance suite on a real broker, as stores do.
 */
import type { Clock } from "../clock.ts";
import type { Logger } from "../log.ts";
import type { Message } from "./message.ts";

/** Where the jobs of a definition go when they are due: what `kafka({ topic })`, `nats({ subject })` and the others return. */
export interface Route {
  readonly transport: TransportFactory;
  /** The topic, subject, stream or URL. */
  readonly destination: string;
  /** After this long without an answer a publish is ambiguous; and a job whose rollback could not be written is published again. */
  readonly dispatchTimeoutMs: number;
}

/** A transport that is not open yet. */
export interface TransportFactory {
  /** As metrics and logs call it: `kafka`, `nats`, `redis-streams`, `http`. */
  readonly kind: string;
  /** Routes whose transports have the same kind and address share one connection. Never shown: it may hold credentials. */
  readonly address: string;
  /** Touches no network: a broker that is down when the relay starts is a refusal of each publish, not a failed start. */
  open(context: TransportContext): Promise<Transport>;
}

export interface TransportContext {
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Transport {
  /**
   * Sends a batch to the broker and waits for its answer to each message. It never rejects; answers are in the order of the messages.
   * Messages of one key arrive in the order given, as far as the broker keeps one. No message is sent twice by the transport itself,
   * unless the broker itself drops the copy (an idempotent producer): an ambiguous one is the relay's to decide.
   */
  publish(messages: readonly Message[], options: PublishOptions): Promise<PublishResult[]>;
  close(): Promise<void>;
}

export interface PublishOptions {
  /** What has no answer after this long is ambiguous; a message that was not sent by then is not sent any more. */
  readonly timeoutMs: number;
  /**
   * How long an answer may be waited for by what is known when it is asked, which is more than `timeoutMs` has left once the sender has
   * gained time. For transports whose receivers do their work before they answer.
   */
  answerLeftMs?(): number;
}

export type PublishResult =
  /** The broker has it, as durably as it was configured to. */
  | { readonly kind: "acknowledged" }
  /** It was certainly not taken. `permanent`: nor will it ever be (too large, not authorised). */
  | {
      readonly kind: "refused";
      readonly error: Error;
      readonly permanent: boolean;
      /** When the receiver asked to be left alone for so long. */
      readonly retryAfterMs?: number;
      /** Only this message was meant: the receiver is there for others. */
      readonly ofJob?: boolean;
    }
  /** Unknown: no answer, or the connection broke after it was sent. */
  | { readonly kind: "ambiguous"; readonly error: Error };

/** A URL may carry a login, or a token among its parameters. */
export function withoutSecrets(destination: string): string {
  return destination.replace(/\/\/[^/]*@/, "//…@").replace(/\?.*$/s, "?…");
}
