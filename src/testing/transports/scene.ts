import assert from "node:assert/strict";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import { encodeHeader, type Message } from "../../message/message.ts";
import type { PublishResult, Route, Transport } from "../../message/transport.ts";
import { until } from "../until.ts";
import type { TransportPlace } from "./harness.ts";

export { until } from "../until.ts";

export const patientMs = 30_000;

let count = 0;

/** A message that no other test makes; its body is `{"id": …}`. */
export function newMessage(
  destination: string,
  {
    id = `m-${process.pid}-${++count}`,
    key = id,
    body = JSON.stringify({ id }),
  }: { id?: string; key?: string; body?: string } = {},
): Message {
  return {
    destination,
    key,
    dedupeId: `${id}:0`,
    headers: {
      "content-type": "application/json",
      "idempotency-key": id,
      "escapement-id": encodeHeader(id),
      "escapement-name": encodeHeader("naïve 100 %"),
    },
    body,
  };
}

/** A route of a place, open, with what is at its destination. */
export class Scene implements AsyncDisposable {
  readonly place: TransportPlace;
  readonly route: Route;
  readonly transport: Transport;

  static async open(place: TransportPlace): Promise<Scene> {
    const route = await place.route();
    return new Scene(place, route, await openTransport(route));
  }

  constructor(place: TransportPlace, route: Route, transport: Transport) {
    this.place = place;
    this.route = route;
    this.transport = transport;
  }

  messages(howMany: number, keyOf?: (index: number) => string): Message[] {
    return Array.from({ length: howMany }, (_, index) =>
      newMessage(this.route.destination, keyOf === undefined ? {} : { key: keyOf(index) }),
    );
  }

  async publish(messages: readonly Message[], timeoutMs = patientMs): Promise<PublishResult[]> {
    const results = await this.transport.publish(messages, { timeoutMs });
    assert.equal(results.length, messages.length, "there is an answer for each message");
    return results;
  }

  /** Publishes until all is acknowledged: a broker that has just come back may refuse at first. */
  async publishPatiently(messages: readonly Message[]): Promise<void> {
    await until("everything is acknowledged", async () => {
      const results = await this.publish(messages);
      return results.every(({ kind }) => kind === "acknowledged");
    });
  }

  /** How often each message has arrived, by its id. */
  async arrivals(): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    for (const { headers } of await this.place.arrived(this.route.destination)) {
      const id = headers["idempotency-key"] ?? "";
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return counts;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.transport.close();
  }
}

export function openTransport(route: Route): Promise<Transport> {
  return route.transport.open({ clock: systemClock, log: silentLogger });
}

export function idOf(message: Message): string {
  return message.headers["idempotency-key"] ?? "";
}

export function kindsOf(results: readonly PublishResult[]): string[] {
  return [...new Set(results.map(describeResult))];
}

function describeResult(result: PublishResult): string {
  if (result.kind === "acknowledged") return "acknowledged";
  const permanent = result.kind === "refused" && result.permanent ? " for good" : "";
  return `${result.kind}${permanent}: ${result.error.message}`;
}
