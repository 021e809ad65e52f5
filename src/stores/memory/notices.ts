import type { Clock } from "../../clock.ts";
import type { Notice } from "../../store.ts";

interface Subscriber {
  readonly clock: Clock;
  readonly listener: (notice: Notice) => void;
}

/** Above this many, a notice says "some" and leaves the names out. */
const maxNamed = 1_000;

/** Gathers what a verb changed and tells it once the verb is done, at the end of the turn. */
export class Notices {
  readonly subscribers = new Set<Subscriber>();
  readonly #queues = new Set<string>();
  #anyQueue = false;
  readonly #cancelled: string[] = [];
  readonly #ended: string[] = [];
  #schedules = false;
  #configuration = false;

  claimable(queue: string): void {
    this.#queues.add(queue);
  }

  /** A key was freed, and its jobs may wait in any queue. */
  claimableAnywhere(): void {
    this.#anyQueue = true;
  }

  cancelRequested(id: string): void {
    this.#cancelled.push(id);
  }

  ended(id: string): void {
    this.#ended.push(id);
  }

  schedulesChanged(): void {
    this.#schedules = true;
  }

  queueConfigured(): void {
    this.#configuration = true;
  }

  /** Hands everything gathered to the subscribers, each on its own clock's next turn. */
  flush(): void {
    const notices = this.#drain();
    if (notices.length === 0) return;
    for (const subscriber of this.subscribers) {
      subscriber.clock.defer(() => {
        if (!this.subscribers.has(subscriber)) return;
        for (const notice of notices) subscriber.listener(notice);
      });
    }
  }

  #drain(): Notice[] {
    const notices: Notice[] = [];
    if (this.#anyQueue) notices.push({ kind: "jobs", queues: null });
    else if (this.#queues.size > 0) notices.push({ kind: "jobs", queues: [...this.#queues] });
    if (this.#cancelled.length > 0) notices.push({ kind: "cancel", ids: [...this.#cancelled] });
    if (this.#ended.length > maxNamed) notices.push({ kind: "ended", ids: null });
    else if (this.#ended.length > 0) notices.push({ kind: "ended", ids: [...this.#ended] });
    if (this.#schedules) notices.push({ kind: "schedules" });
    if (this.#configuration) notices.push({ kind: "queues" });
    this.#queues.clear();
    this.#anyQueue = false;
    this.#cancelled.length = 0;
    this.#ended.length = 0;
    this.#schedules = false;
    this.#configuration = false;
    return notices;
  }
}
