import type { Delivered, ReceivedMessage, Source } from "../../message/source.ts";

/** A broker in memory: it hands out what it is given, and remembers what became of it. */
export class MemorySource implements Source {
  readonly kind = "memory";
  readonly acked: string[] = [];
  readonly abandoned: string[] = [];
  readonly released: string[] = [];
  /** How many attempts each of them had used up. */
  readonly costs = new Map<string, number>();
  readonly extended: string[] = [];
  extendEveryMs: number | null = null;
  #deliver: ((one: Delivered) => Promise<void>) | null = null;
  readonly #waiting: Delivered[] = [];

  async open(): ReturnType<Source["open"]> {
    return {
      extendEveryMs: this.extendEveryMs,
      run: async (deliver, signal) => {
        this.#deliver = deliver;
        for (const one of this.#waiting.splice(0)) void deliver(one);
        if (!signal.aborted)
          await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        this.#deliver = null;
      },
      close: async () => {},
    };
  }

  /** @returns when there is room for the next. */
  send(message: ReceivedMessage, deliveries = 1): Promise<void> {
    const id = message.headers["escapement-id"] ?? "?";
    const one: Delivered = {
      message,
      position: `memory, ${id}`,
      deliveries,
      abandon: async () => void this.abandoned.push(id),
      ack: async () => void this.acked.push(id),
      extend: async () => void this.extended.push(id),
      release: async (attempts) => {
        this.released.push(id);
        this.costs.set(id, attempts);
      },
    };
    if (this.#deliver !== null) return this.#deliver(one);
    this.#waiting.push(one);
    return Promise.resolve();
  }
}

let count = 0;

export function newReceived(
  name: string,
  input: unknown,
  { key = "", ...headers }: { readonly key?: string } & Readonly<Record<string, string>> = {},
): ReceivedMessage {
  const id = headers["escapement-id"] ?? `job-${++count}`;
  return {
    key,
    headers: {
      "content-type": "application/json",
      "idempotency-key": `key-of-${id}`,
      "escapement-namespace": "test",
      "escapement-id": id,
      "escapement-name": name,
      "escapement-queue": "default",
      "escapement-delivery": "at-least-once",
      "escapement-fire-at": "2026-11-15T03:00:00.000Z",
      "escapement-attempt": "1",
      "escapement-token": "1",
      "escapement-redrives": "0",
      ...headers,
    },
    body: JSON.stringify(input),
  };
}
