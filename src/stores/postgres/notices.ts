import { createHash, randomUUID } from "node:crypto";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../log.ts";
import type { Notice } from "../../store/notices.ts";
import { Listeners } from "../listeners.ts";
import { anyNotice, isNotice } from "../notice.ts";
import type { Link, Value } from "./connection/link.ts";
import { Listener } from "./connection/listener.ts";
import { isRecord } from "./rows.ts";

/** The server takes 8000 bytes; JSON is split well below that. */
const maxPayloadLength = 7_500;
/** How many ids of ended jobs are collected before they are reported as "some". */
const maxWaiting = 200;
/** How long ends of jobs are collected into one notice: under load there are many, and only callers that wait for a result need them. */
const endedMs = 25;
const notify = "select to_json(pg_notify($1, $2)::text)::text as answer";
const lostNotice = "a notice to other processes was lost; they poll";

export interface ChannelOptions {
  readonly link: Link;
  readonly schema: string;
  readonly namespace: string;
  /** Whether this connection can receive the server's notices. */
  readonly listen: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Publishes what verbs changed: to this process's listeners at once, to others through the server. It does so after the commit, outside it:
 * a commit that notifies waits for every other such commit on the server, and a hint is not worth that.
 */
export class Channel {
  /** The channel's name on the server: one for each schema and namespace. */
  readonly name: string;
  readonly #options: ChannelOptions;
  readonly #sender = randomUUID();
  readonly #listeners: Listeners;
  readonly #listener: Listener | null;
  readonly #waiting: Notice[] = [];
  #sending: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: ChannelOptions) {
    this.#options = options;
    this.#listeners = new Listeners(options.log);
    const { schema, namespace, link, log } = options;
    this.name = `escapement_${createHash("sha256").update(`${schema}\n${namespace}`).digest("hex").slice(0, 32)}`;
    const hear = (payload: string): void => this.#hear(payload);
    // What was missed while not listening is unknown: it may be anything.
    const missed = (): void => this.#listeners.notify(anyNotice);
    this.#listener = options.listen ? new Listener({ link, log, channel: this.name, hear, missed }) : null;
  }

  publish(notices: readonly Notice[]): void {
    if (notices.length === 0 || this.#closed) return;
    if (this.#listeners.size > 0) this.#options.clock.defer(() => this.#listeners.notify(notices));
    this.#waiting.push(...notices);
    this.#plan();
  }

  /**
   * Runs a statement and announces what it changes. The notice to other processes is a statement right behind it on its connection, sent
   * before the answer is here: a job is picked up a trip earlier. If the first one fails, the notice was needless, which does no harm.
   */
  async runAndTell(sql: string, values: readonly Value[], notices: readonly Notice[]): Promise<unknown> {
    const { link, clock, log } = this.#options;
    if (!link.canFollow || this.#closed) {
      const answer = await link.run(sql, values, true);
      this.publish(notices);
      return answer;
    }
    const told = { text: notify, values: [this.name, this.payload(merge(notices), true)] };
    const lost = (error: unknown): void => log.debug({ error }, lostNotice);
    const answer = await link.runWith({ text: sql, values }, told, lost);
    if (this.#listeners.size > 0) clock.defer(() => this.#listeners.notify(notices));
    return answer;
  }

  /** Notices as other processes receive them; in a caller's transaction they are part of it, and this process receives them too. */
  payload(notices: readonly Notice[], own: boolean): string {
    const payload = JSON.stringify({ sender: own ? this.#sender : null, notices });
    if (payload.length <= maxPayloadLength) return payload;
    return JSON.stringify({ sender: own ? this.#sender : null, notices: notices.map(withoutNames) });
  }

  async subscribe(listener: (notice: Notice) => void): Promise<() => Promise<void>> {
    const remove = this.#listeners.add(listener);
    await this.#listener?.start();
    return async () => {
      remove();
      if (this.#listeners.size === 0) await this.#listener?.stop();
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
    if (this.#timer !== null) clearTimeout(this.#timer);
    await (this.#sending ?? this.#send());
    await this.#listener?.stop();
  }

  #plan(): void {
    if (this.#sending !== null || this.#waiting.length === 0) return;
    if (this.#waiting.some(({ kind }) => kind !== "ended")) {
      this.#sending = this.#send();
    } else if (this.#timer === null) {
      this.#timer = setTimeout(() => {
        this.#sending ??= this.#send();
      }, endedMs);
      this.#timer.unref();
    }
  }

  /** Sends what has been collected. A failure is harmless: every listener also polls. */
  async #send(): Promise<void> {
    const { link, log } = this.#options;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const notices = merge(this.#waiting.splice(0));
    try {
      const payload = this.payload(notices, true);
      if (notices.length > 0) {
        await link.run(notify, [this.name, payload], true);
      }
    } catch (error) {
      log.debug({ error }, lostNotice);
    }
    this.#sending = null;
    if (!this.#closed) this.#plan();
  }

  #hear(payload: string): void {
    const message = parse(payload);
    if (message === null || message.sender === this.#sender) return;
    this.#listeners.notify(message.notices);
  }
}

/** One notice of each kind. */
function merge(notices: readonly Notice[]): Notice[] {
  const merged: Notice[] = [];
  const jobs = notices.filter((notice) => notice.kind === "jobs");
  if (jobs.some(({ queues }) => queues === null)) merged.push({ kind: "jobs", queues: null });
  else if (jobs.length > 0) {
    merged.push({ kind: "jobs", queues: [...new Set(jobs.flatMap(({ queues }) => queues ?? []))] });
  }
  const ended = notices.filter((notice) => notice.kind === "ended");
  const ids = ended.flatMap((notice) => notice.ids ?? []);
  if (ended.some((notice) => notice.ids === null) || ids.length > maxWaiting)
    merged.push({ kind: "ended", ids: null });
  else if (ids.length > 0) merged.push({ kind: "ended", ids });
  const cancels = notices.flatMap((notice) => (notice.kind === "cancel" ? notice.ids : []));
  if (cancels.length > 0) merged.push({ kind: "cancel", ids: cancels });
  for (const kind of ["schedules", "queues"] as const) {
    if (notices.some((notice) => notice.kind === kind)) merged.push({ kind });
  }
  return merged;
}

/** A cancel is useless without its ids; the heartbeat reports it too. */
function withoutNames(notice: Notice): Notice {
  if (notice.kind === "jobs") return { kind: "jobs", queues: null };
  if (notice.kind === "ended") return { kind: "ended", ids: null };
  return notice.kind === "cancel" ? { kind: "cancel", ids: notice.ids.slice(0, 20) } : notice;
}

function parse(payload: string): { readonly sender: unknown; readonly notices: readonly Notice[] } | null {
  try {
    const message: unknown = JSON.parse(payload);
    if (!isRecord(message) || !Array.isArray(message["notices"])) return null;
    return { sender: message["sender"], notices: message["notices"].filter(isNotice) };
  } catch {
    return null;
  }
}
