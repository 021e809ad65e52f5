import type { Clock } from "../../clock.ts";
import type { Notice, StoreContext } from "../../store.ts";

/** Above this many, a notice says "some" and leaves the names out. */
const maxNamed = 1_000;

/** What transactions changed, gathered until it can be told. */
export class NoticeDraft {
  readonly #queues = new Set<string>();
  #anyQueue = false;
  readonly #cancels: string[] = [];
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
    this.#cancels.push(id);
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

  toNotices(): Notice[] {
    const notices: Notice[] = [];
    if (this.#anyQueue) notices.push({ kind: "jobs", queues: null });
    else if (this.#queues.size > 0) notices.push({ kind: "jobs", queues: [...this.#queues] });
    if (this.#cancels.length > 0) notices.push({ kind: "cancel", ids: this.#cancels });
    if (this.#ended.length > maxNamed) notices.push({ kind: "ended", ids: null });
    else if (this.#ended.length > 0) notices.push({ kind: "ended", ids: this.#ended });
    if (this.#schedules) notices.push({ kind: "schedules" });
    if (this.#configuration) notices.push({ kind: "queues" });
    return notices;
  }
}

/** How the handles of this process on one namespace hear of each other's changes; what other processes do, they find out by asking. */
export interface Hub {
  publish(notices: readonly Notice[], clock: Clock): void;
  subscribe(listener: (notice: Notice) => void): () => void;
}

const listenersOf = new Map<string, Set<(notice: Notice) => void>>();

export function hubOf(place: string, { log }: StoreContext): Hub {
  return {
    publish(notices, clock) {
      const listeners = listenersOf.get(place);
      if (notices.length === 0 || listeners === undefined) return;
      clock.defer(() => {
        for (const listener of listeners) {
          try {
            for (const notice of notices) listener(notice);
          } catch (error) {
            log.error({ error }, "a listener for notices of the store failed");
          }
        }
      });
    },
    subscribe(listener) {
      const listeners = listenersOf.get(place) ?? new Set();
      listenersOf.set(place, listeners);
      // A function of its own for each subscription: the same listener may be given twice.
      const own = (notice: Notice): void => listener(notice);
      listeners.add(own);
      return () => {
        listeners.delete(own);
        if (listeners.size === 0 && listenersOf.get(place) === listeners) listenersOf.delete(place);
      };
    },
  };
}
