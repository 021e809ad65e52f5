/**
 * The contract of a source: where a consumer gets messages from. It only carries them; what they mean and how they end is decided
 * by the consumer.
 */
import type { Clock } from "../clock.ts";
import type { Logger } from "../log.ts";
import type { Route } from "./transport.ts";

/** A message as it came. */
export interface ReceivedMessage {
  /** What it must stay in order with; empty if the sender gave none. */
  readonly key: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A message that this process has in hand, until it reports the outcome. At most one of its verbs is called at a time. */
export interface Delivered {
  readonly message: ReceivedMessage;
  /** Why the message could not be decoded, if it could not. It is dead, and `message` is what could be read of it. */
  readonly unreadable?: Error;
  /** Where the broker keeps it, for a person who looks for it: `topic payments, partition 3, offset 17`. */
  readonly position: string;
  /** How often the broker has handed it out, this time included, as far as that used up an attempt; 1 if it does not count. */
  readonly deliveries: number;
  /** It needs not be delivered again. It may take a while until the broker knows. */
  ack(): Promise<void>;
  /** As `ack`, for a message that was not handled and could not be dead-lettered: where the broker keeps acknowledged messages, it stays there. */
  abandon(): Promise<void>;
  /** It is still being processed, or waits here for its next attempt: keep it from other consumers. */
  extend(): Promise<void>;
  /**
   * Another consumer may have it at once.
   *
   * @param attempts how many it has used here: brokers that accept a count use it instead of counting deliveries.
   */
  release(attempts: number): Promise<void>;
}

export interface SourceContext {
  readonly clock: Clock;
  readonly log: Logger;
  /** How many messages may be in hand at once. */
  readonly capacity: number;
}

/** A source that is not open yet: what `kafkaSource(…)`, `natsSource(…)` and `redisStreamsSource(…)` return. */
export interface Source {
  /** `kafka`, `nats`, `redis-streams`. */
  readonly kind: string;
  /**
   * Whether what this route publishes comes back here, as far as can be known before anything is open: dead messages would loop
   * forever. Left out if it can never be known.
   */
  reads?(route: Route): boolean;
  open(context: SourceContext): Promise<SourceSession>;
}

export interface SourceSession {
  /** How often a message in hand has to be extended; null if that is not needed. */
  readonly extendEveryMs: number | null;
  /**
   * Delivers until the signal fires, and resolves when nothing more will come. It waits for each `deliver`, which resolves once there is
   * room for the next. It reconnects on its own and rejects only when retrying is pointless.
   */
  run(deliver: (one: Delivered) => Promise<void>, signal: AbortSignal): Promise<void>;
  /** After `run` has ended and all that was in hand was acknowledged or released: writes what is still to be written, and disconnects. */
  close(): Promise<void>;
}
