import type { ReceivedMessage, Source } from "../../message/source.ts";
import type { Route } from "../../message/transport.ts";

export interface RouteOptions {
  readonly url: string;
  readonly topic: string;
  readonly dispatchTimeoutMs: number;
}

/** One kind of broker under a few words: where to publish, where to read, and what it has in the end. */
export interface Broker {
  /** Makes the topic of a run. */
  prepare(url: string, topic: string): Promise<void>;
  route(options: RouteOptions): Route;
  /** @param leaseMs how long a consumer that died keeps what it had in hand. */
  source(url: string, topic: string, leaseMs: number): Source;
  /** Everything that the topic holds, each entry once, read by a client of our own. */
  copies(url: string, topic: string): Promise<ReceivedMessage[]>;
  /** The part of the cluster that leads the topic; null if there is none to tell. */
  leader(url: string, topic: string): Promise<string | null>;
  /** Waits until the topic takes messages again, through whichever server: a cluster that is back may still elect who leads the topic. */
  back(url: string, topic: string): Promise<void>;
  /** Takes the topic away. */
  forget(url: string, topic: string): Promise<void>;
}

export const group = "verify";
