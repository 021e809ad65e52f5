import type { Notice } from "../store/notices.ts";

/** Above this many, a notice says "some" and leaves the names out. */
const maxNamed = 1_000;

/** What verbs changed, collected until it is published. */
export class NoticeDraft {
  readonly #queues = new Set<string>();
  #anyQueue = false;
  readonly #cancels: string[] = [];
  /** A server may report the end of a job that its caller knows of, too. */
  readonly #ended = new Set<string>();
  #schedules = false;
  #configuration = false;

  claimable(queue: string): void {
    this.#queues.add(queue);
  }

  /** A key was freed; its jobs may wait in any queue. */
  claimableAnywhere(): void {
    this.#anyQueue = true;
  }

  cancelRequested(id: string): void {
    this.#cancels.push(id);
  }

  ended(id: string): void {
    this.#ended.add(id);
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
    if (this.#ended.size > maxNamed) notices.push({ kind: "ended", ids: null });
    else if (this.#ended.size > 0) notices.push({ kind: "ended", ids: [...this.#ended] });
    if (this.#schedules) notices.push({ kind: "schedules" });
    if (this.#configuration) notices.push({ kind: "queues" });
    return notices;
  }
}
