import { closeSync, type FSWatcher, fstatSync, ftruncateSync, readSync, watch, writeSync } from "node:fs";
import type { Notice } from "../../../store/notices.ts";
import { anyNotice, isNotice } from "../../notice.ts";
import { openNoticesFile } from "./notices-file.ts";

/** Above this size the file starts over. */
const maxBytes = 256 * 1024;
/** How often one process writes at most; what comes in between is collected. */
const minIntervalMs = 5;
const maxPending = 100;
/** A longer line says "anything" instead. */
const maxLine = 64 * 1024;
/** Maximum read at once: more than any process writes between two looks. */
const maxReadBytes = 4 * maxBytes;
/** With more than this, what was heard is "anything". */
const maxHeard = 1_000;
/** How long a process skips the file after it could not use it. */
const retryMs = 5_000;

interface SidecarOptions {
  /** The database file; the notices are next to it. */
  readonly database: string;
  /** Whose notices are received. */
  readonly namespace: string;
  /** Identifies this store, so it does not receive its own notices. */
  readonly sender: string;
  readonly hear: (notices: readonly Notice[]) => void;
  readonly failed: (error: unknown) => void;
}

/**
 * A file next to the database, through which processes wake each other: each commit that matters appends a line, and the
 * others watch the file. It holds only hints; it may be removed at any time and is never synced to disk.
 */
export class Sidecar {
  readonly #options: SidecarOptions;
  readonly #path: string;
  #file: number | null = null;
  #watcher: FSWatcher | null = null;
  #offset = 0;
  #pending: Notice[] = [];
  #timer: NodeJS.Timeout | null = null;
  #isWanted = false;
  #failed = false;
  #retryAtMs = 0;
  #retry: NodeJS.Timeout | null = null;

  constructor(options: SidecarOptions) {
    this.#options = options;
    this.#path = `${options.database}-notices`;
  }

  /** Notifies other processes, the first time at once and then at intervals. */
  tell(notices: readonly Notice[]): void {
    if (notices.length === 0) return;
    this.#pending.push(...notices);
    if (this.#timer !== null) return;
    this.#flush();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#flush();
    }, minIntervalMs);
    this.#timer.unref();
  }

  /** Starts to receive notices of other processes. */
  listen(): void {
    this.#isWanted = true;
    if (this.#watcher !== null) return;
    this.#guard(() => {
      const file = this.#open();
      this.#offset = fstatSync(file).size;
      this.#watcher = watch(this.#path, { persistent: false }, () => this.#changed());
      this.#watcher.on("error", (error) => this.#fail(error));
    });
  }

  deafen(): void {
    this.#isWanted = false;
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
    this.#watcher?.close();
    this.#watcher = null;
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#flush();
    this.deafen();
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #flush(): void {
    if (this.#pending.length === 0) return;
    const notices = this.#pending.length > maxPending ? anyNotice : this.#pending;
    this.#pending = [];
    this.#guard(() => {
      const file = this.#open();
      const { namespace, sender } = this.#options;
      const named = JSON.stringify({ namespace, sender, notices });
      const line = `${named.length <= maxLine ? named : JSON.stringify({ namespace, sender, notices: anyNotice })}\n`;
      const before = fstatSync(file).size;
      if (before > maxBytes) ftruncateSync(file, 0);
      const written = writeSync(file, line);
      // What only this store wrote needs no reading.
      if (before === this.#offset && before <= maxBytes) this.#offset += written;
    });
  }

  /** Opens the file, and reopens it when it has been removed. */
  #open(): number {
    if (this.#file !== null && fstatSync(this.#file).nlink === 1) return this.#file;
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
    this.#file = openNoticesFile(this.#path, this.#options.database);
    this.#offset = 0;
    return this.#file;
  }

  #changed(): void {
    this.#guard(() => {
      const removed = this.#file !== null && fstatSync(this.#file).nlink !== 1;
      if (removed && this.#watcher !== null) {
        this.deafen();
        this.listen();
        // Notices between the removal and now were missed.
        this.#options.hear(anyNotice);
        return;
      }
      const heard = this.#read();
      if (heard.length > 0) this.#options.hear(heard);
    });
  }

  #read(): readonly Notice[] {
    const file = this.#open();
    const { size } = fstatSync(file);
    if (size < this.#offset) this.#offset = 0;
    if (size === this.#offset) return [];
    if (size - this.#offset > maxReadBytes) {
      this.#offset = size;
      return anyNotice;
    }
    const buffer = Buffer.alloc(size - this.#offset);
    const length = readSync(file, buffer, 0, buffer.length, this.#offset);
    const end = buffer.subarray(0, length).lastIndexOf(0x0a) + 1;
    this.#offset += end;
    return this.#parse(buffer.toString("utf8", 0, end));
  }

  #parse(text: string): readonly Notice[] {
    const heard: Notice[] = [];
    let isComplete = true;
    for (const line of text.split("\n")) {
      if (line === "") continue;
      const told = messageIn(line);
      if (told === null) isComplete = false;
      else if (told.namespace === this.#options.namespace && told.sender !== this.#options.sender) {
        heard.push(...told.notices);
      }
    }
    if (isComplete && heard.length <= maxHeard) return heard;
    return [...anyNotice, ...heard.filter(({ kind }) => kind === "cancel").slice(0, maxHeard)];
  }

  /** Polling makes up for a lost hint; it must not fail what was committed. */
  #guard(work: () => void): void {
    if (performance.now() < this.#retryAtMs) return;
    try {
      work();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#retryAtMs = performance.now() + retryMs;
    if (this.#isWanted && this.#watcher === null && this.#retry === null) {
      this.#retry = setTimeout(() => {
        this.#retry = null;
        // A timer may fire a moment early, and there is no second one.
        this.#retryAtMs = 0;
        this.listen();
      }, retryMs);
      this.#retry.unref();
    }
    if (this.#failed) return;
    this.#failed = true;
    this.#options.failed(error);
  }
}

interface Message {
  readonly namespace: unknown;
  readonly sender: unknown;
  readonly notices: readonly Notice[];
}

/** Null for a line that was torn when the file started over, or that another program wrote: it may have said anything. */
function messageIn(line: string): Message | null {
  try {
    const told: unknown = JSON.parse(line);
    if (typeof told !== "object" || told === null || !("namespace" in told) || !("notices" in told))
      return null;
    const sender = "sender" in told ? told.sender : null;
    const notices: readonly unknown[] = Array.isArray(told.notices) ? told.notices : [];
    return { namespace: told.namespace, sender, notices: notices.filter(isNotice) };
  } catch {
    return null;
  }
}
