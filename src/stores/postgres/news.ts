import type { Notice } from "../../store.ts";
import { isRecord, textsOf } from "./rows.ts";

/** Above this many, a notice says "some" and leaves the names out. */
const maxNamed = 1_000;

/** What verbs changed, gathered until it can be told. */
export class News {
  readonly #queues = new Set<string>();
  #anywhere = false;
  readonly #ended: string[] = [];
  readonly #cancels: string[] = [];

  claimable(queue: string): void {
    this.#queues.add(queue);
  }

  ended(id: string): void {
    this.#ended.push(id);
  }

  /** Adds what a function of the server told: {queues, anywhere, ended, cancels}, or null. */
  add(told: unknown): void {
    if (!isRecord(told)) return;
    for (const queue of textsOf(told["queues"])) this.#queues.add(queue);
    if (told["anywhere"] === true) this.#anywhere = true;
    this.#ended.push(...textsOf(told["ended"]));
    this.#cancels.push(...textsOf(told["cancels"]));
  }

  toNotices(): Notice[] {
    const notices: Notice[] = [];
    if (this.#anywhere) notices.push({ kind: "jobs", queues: null });
    else if (this.#queues.size > 0) notices.push({ kind: "jobs", queues: [...this.#queues] });
    if (this.#cancels.length > 0) notices.push({ kind: "cancel", ids: this.#cancels });
    const ended = [...new Set(this.#ended)];
    if (ended.length > maxNamed) notices.push({ kind: "ended", ids: null });
    else if (ended.length > 0) notices.push({ kind: "ended", ids: ended });
    return notices;
  }
}
