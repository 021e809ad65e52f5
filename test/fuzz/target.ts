import { type Consumer, consume, type HandlerOptions } from "../../src/consumer/index.ts";
import type { Source } from "../../src/message/source.ts";
import type { Route } from "../../src/message/transport.ts";
import type { RawMessage } from "./broken-messages.ts";

/** A transport with a consumer behind it, at which broken messages are thrown. */
export interface Target extends AsyncDisposable {
  /** Hands messages over as bytes, past every client that would not send them. Resolves to how many were taken. */
  publish(messages: readonly RawMessage[]): Promise<number>;
  /** How many of those that were taken have come to an end. */
  ended(): number;
  /** In a line, for a person. */
  describe(): string;
}

export interface OpenTarget {
  /** False, or why there is no such server. */
  skip(): Promise<false | string>;
  open(handlers: HandlerOptions): Promise<Target>;
}

/** A consumer whose dead messages go to the same kind of broker. */
export async function startConsumer(
  handlers: HandlerOptions,
  from: Source,
  deadLetter: Route,
): Promise<Pick<Target, "ended" | "describe"> & { readonly consumer: Consumer }> {
  const consumer = consume({ ...handlers, from, deadLetter });
  await consumer.start();
  return {
    consumer,
    ended() {
      const { handled, duplicates, dead, unburied } = consumer.counts;
      return handled + duplicates + dead + unburied;
    },
    describe() {
      const { handled, duplicates, dead, unburied } = consumer.counts;
      return `${handled} handled, ${duplicates} duplicates, ${dead} dead, ${unburied} refused as dead letters`;
    },
  };
}
