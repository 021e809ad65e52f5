import type { Notice } from "../../store.ts";

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

/** Tells this store's own listeners. */
export class Listeners {
  readonly #listeners = new Set<(notice: Notice) => void>();
  readonly #failed: (error: unknown) => void;

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  get size(): number {
    return this.#listeners.size;
  }

  add(listener: (notice: Notice) => void): () => void {
    // A function of its own for each subscription: the same listener may be given twice.
    const own = (notice: Notice): void => listener(notice);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  tell(notices: readonly Notice[]): void {
    for (const listener of this.#listeners) {
      try {
        for (const notice of notices) listener(notice);
      } catch (error) {
        this.#failed(error);
      }
    }
  }
}
