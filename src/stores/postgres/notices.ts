import { createHash, randomUUID } from "node:crypto";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../log.ts";
import { anyNotice, isNotice } from "../../notice.ts";
import type { Notice } from "../../store.ts";
import type { Link } from "./link.ts";
import { Listener } from "./listener.ts";
import { isRecord } from "./rows.ts";

/** The server takes 8000 bytes; JSON is cut well before. */
const maxPayloadLength = 7_500;
/** How many ids of ended jobs wait to be told before they are told as "some". */
const maxWaiting = 200;
/** How long the ends of jobs wait to be told together: under load there are many, and only who waits for a result cares. */
const endedMs = 25;

export interface ChannelOptions {
  readonly link: Link;
  readonly schema: string;
  readonly namespace: string;
  /** Whether the server's own notices can be heard on this connection. */
  readonly listen: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Tells what verbs changed: this process's listeners at once, others through the server. It is told after the commit and outside of it:
 * a commit that notifies waits for every other such commit of the server, and a hint is not worth that.
 */
export class Channel {
  /** The name on the server: one for each schema and namespace. */
  readonly name: string;
  readonly #options: ChannelOptions;
  readonly #sender = randomUUID();
  readonly #listeners = new Set<(notice: Notice) => void>();
  readonly #listener: Listener | null;
  readonly #waiting: Notice[] = [];
  #sending: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: ChannelOptions) {
    this.#options = options;
    const { schema, namespace, link, log } = options;
    this.name = `escapement_${createHash("sha256").update(`${schema}\n${namespace}`).digest("hex").slice(0, 32)}`;
    const hear = (payload: string): void => this.#hear(payload);
    // What was told while nobody listened is not known: perhaps everything.
    const missed = (): void => this.#tell(anyNotice);
    this.#listener = options.listen ? new Listener({ link, log, channel: this.name, hear, missed }) : null;
  }

  publish(notices: readonly Notice[]): void {
    if (notices.length === 0 || this.#closed) return;
    if (this.#listeners.size > 0) this.#options.clock.defer(() => this.#tell(notices));
    this.#waiting.push(...notices);
    this.#plan();
  }

  /** Notices as others hear them; in a caller's transaction they are part of it, and this process hears them too. */
  payload(notices: readonly Notice[], own: boolean): string {
    const payload = JSON.stringify({ sender: own ? this.#sender : null, notices });
    if (payload.length <= maxPayloadLength) return payload;
    return JSON.stringify({ sender: own ? this.#sender : null, notices: notices.map(withoutNames) });
  }

  async subscribe(listener: (notice: Notice) => void): Promise<() => Promise<void>> {
    // A function of its own for each subscription: the same listener may be given twice.
    const own = (notice: Notice): void => listener(notice);
    this.#listeners.add(own);
    await this.#listener?.start();
    return async () => {
      this.#listeners.delete(own);
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

  /** Sends what has gathered. Failing is no harm: whoever listens also polls. */
  async #send(): Promise<void> {
    const { link, log } = this.#options;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const notices = gather(this.#waiting.splice(0));
    try {
      const payload = this.payload(notices, true);
      if (notices.length > 0) {
        await link.run("select to_json(pg_notify($1, $2)::text)::text as answer", [this.name, payload]);
      }
    } catch (error) {
      log.debug({ error }, "a notice to other processes was lost; they poll");
    }
    this.#sending = null;
    if (!this.#closed) this.#plan();
  }

  #hear(payload: string): void {
    const message = parse(payload);
    if (message === null || message.sender === this.#sender) return;
    this.#tell(message.notices);
  }

  #tell(notices: readonly Notice[]): void {
    for (const listener of this.#listeners) {
      try {
        for (const notice of notices) listener(notice);
      } catch (error) {
        this.#options.log.error({ error }, "a listener for notices of the store failed");
      }
    }
  }
}

/** One notice of each kind. */
function gather(notices: readonly Notice[]): Notice[] {
  const gathered: Notice[] = [];
  const jobs = notices.filter((notice) => notice.kind === "jobs");
  if (jobs.some(({ queues }) => queues === null)) gathered.push({ kind: "jobs", queues: null });
  else if (jobs.length > 0) {
    gathered.push({ kind: "jobs", queues: [...new Set(jobs.flatMap(({ queues }) => queues ?? []))] });
  }
  const ended = notices.filter((notice) => notice.kind === "ended");
  const ids = ended.flatMap((notice) => notice.ids ?? []);
  if (ended.some((notice) => notice.ids === null) || ids.length > maxWaiting)
    gathered.push({ kind: "ended", ids: null });
  else if (ids.length > 0) gathered.push({ kind: "ended", ids });
  const cancels = notices.flatMap((notice) => (notice.kind === "cancel" ? notice.ids : []));
  if (cancels.length > 0) gathered.push({ kind: "cancel", ids: cancels });
  for (const kind of ["schedules", "queues"] as const) {
    if (notices.some((notice) => notice.kind === kind)) gathered.push({ kind });
  }
  return gathered;
}

/** A cancel cannot go without its ids; the heartbeat tells of it too. */
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
