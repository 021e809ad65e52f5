import type { Clock } from "../../clock.ts";
import type { StreamClient } from "./client.ts";

export interface AcknowledgementParts {
  readonly client: StreamClient;
  readonly clock: Clock;
  readonly group: string;
  readonly deleteHandled: boolean;
}

interface Batch {
  readonly ids: string[];
  readonly written: Promise<void>;
}

/** Acknowledges in one call everything handled in one turn of the event loop. */
export class Acknowledgements {
  readonly #parts: AcknowledgementParts;
  readonly #batches = new Map<string, Batch>();
  readonly #underway = new Set<Promise<void>>();

  constructor(parts: AcknowledgementParts) {
    this.#parts = parts;
  }

  add(stream: string, id: string): Promise<void> {
    const batch = this.#batches.get(stream) ?? this.#begin(stream);
    batch.ids.push(id);
    return batch.written;
  }

  async flush(): Promise<void> {
    await Promise.allSettled([...this.#batches.values()].map(({ written }) => written));
    await Promise.allSettled(this.#underway);
  }

  #begin(stream: string): Batch {
    const ids: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#parts.clock.defer(resolve);
    const written = promise.then(async () => {
      this.#batches.delete(stream);
      await this.#write(stream, ids);
    });
    const batch = { ids, written };
    this.#batches.set(stream, batch);
    this.#underway.add(written);
    written.catch(() => {}).finally(() => this.#underway.delete(written));
    return batch;
  }

  async #write(stream: string, ids: readonly string[]): Promise<void> {
    const { client, group, deleteHandled } = this.#parts;
    await client.call("XACK", [stream, group, ...ids]);
    if (deleteHandled) await client.call("XDEL", [stream, ...ids]);
  }
}
