import type { Route } from "../../../src/index.ts";
import type { Message } from "../../../src/message/message.ts";
import type { Durability } from "../../beds/bed.ts";

/** The client of a broker as somebody would use it by hand, without any store. */
export interface RawPublisher extends AsyncDisposable {
  /** Publishes a batch and waits until the broker has acknowledged each message; rejects when it has not. */
  publish(messages: readonly Message[]): Promise<void>;
}

/** A fresh destination for one measurement. */
export interface Destination extends AsyncDisposable {
  readonly route: Route;
  openRaw(): Promise<RawPublisher>;
  /** The ids of all jobs whose messages lie there, as somebody else than the publisher finds them. */
  arrived(): Promise<readonly string[]>;
}

/** A broker to publish to. Another one is another entry in `targets`. */
export interface Target extends AsyncDisposable {
  readonly name: string;
  /** Lines for the report: engine and version, and what its acknowledgement means. */
  describe(): Promise<Readonly<Record<string, string>>>;
  open(): Promise<Destination>;
}

export type OpenTarget = (durability: Durability) => Promise<Target>;

/** The id in a message's headers, by which arrivals are counted. */
export const idHeader = "escapement-id";
