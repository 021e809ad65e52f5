import type { AppEvents, Emit, Events } from "../events.ts";
import type { Job } from "../job.ts";

/**
 * Adds to `cancelled` events why the job was cancelled. The holder only learns that it must stop, so the store is asked why; a store that
 * does not answer must not swallow the event.
 */
export class CancelReasons {
  readonly #events: Events;
  readonly #get: (id: string) => Promise<Job | null>;
  readonly #pending = new Set<Promise<void>>();

  constructor(events: Events, get: (id: string) => Promise<Job | null>) {
    this.#events = events;
    this.#get = get;
  }

  emit: Emit = (name, event) => {
    if (name !== "cancelled" || !this.#events.hears(name)) return this.#events.emit(name, event);
    const pending = this.#emitCancelled(event as AppEvents["cancelled"]);
    this.#pending.add(pending);
    void pending.then(() => this.#pending.delete(pending));
  };

  /** Resolves when nothing is left to emit. */
  async settled(): Promise<void> {
    await Promise.all(this.#pending);
  }

  async #emitCancelled({ job }: AppEvents["cancelled"]): Promise<void> {
    const found = await this.#get(job.id).catch(() => null);
    this.#events.emit("cancelled", { job, reason: found?.reason ?? null });
  }
}
