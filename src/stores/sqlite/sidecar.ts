import {
  closeSync,
  type FSWatcher,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  watch,
  writeSync,
} from "node:fs";
import type { Notice } from "../../store.ts";

/** Above this size the file starts over. */
const maxBytes = 256 * 1024;
/** How often one process writes at the most; what comes in between is gathered. */
const minIntervalMs = 5;
const maxGathered = 100;

const anything: readonly Notice[] = [
  { kind: "jobs", queues: null },
  { kind: "ended", ids: null },
  { kind: "schedules" },
  { kind: "queues" },
];

interface SidecarOptions {
  readonly path: string;
  /** Whose notices are heard. */
  readonly namespace: string;
  /** Names this store, so that it does not hear itself. */
  readonly sender: string;
  readonly hear: (notices: readonly Notice[]) => void;
  readonly failed: (error: unknown) => void;
}

/**
 * A file beside the database, by which processes wake each other: each commit that matters appends a line, and the
 * others watch the file. It holds hints only; it may be removed at any time and is never synced to disk.
 */
export class Sidecar {
  readonly #options: SidecarOptions;
  #file: number | null = null;
  #watcher: FSWatcher | null = null;
  #offset = 0;
  #gathered: Notice[] = [];
  #timer: NodeJS.Timeout | null = null;
  #failed = false;

  constructor(options: SidecarOptions) {
    this.#options = options;
  }

  /** Tells other processes, the first time at once and then at intervals. */
  tell(notices: readonly Notice[]): void {
    if (notices.length === 0) return;
    this.#gathered.push(...notices);
    if (this.#timer !== null) return;
    this.#flush();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#flush();
    }, minIntervalMs);
    this.#timer.unref();
  }

  /** Begins to hear other processes. */
  listen(): void {
    if (this.#watcher !== null) return;
    this.#guard(() => {
      const file = this.#open();
      this.#offset = fstatSync(file).size;
      this.#watcher = watch(this.#options.path, { persistent: false }, () => this.#changed());
      this.#watcher.on("error", (error) => this.#fail(error));
    });
  }

  deafen(): void {
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
    if (this.#gathered.length === 0) return;
    const notices = this.#gathered.length > maxGathered ? anything : this.#gathered;
    this.#gathered = [];
    this.#guard(() => {
      const file = this.#open();
      const { namespace, sender } = this.#options;
      const line = `${JSON.stringify({ namespace, sender, notices })}\n`;
      const before = fstatSync(file).size;
      if (before > maxBytes) ftruncateSync(file, 0);
      const written = writeSync(file, line);
      // What was only this store's own needs no reading.
      if (before === this.#offset && before <= maxBytes) this.#offset += written;
    });
  }

  /** Opens the file, and opens it anew when somebody has removed it. */
  #open(): number {
    if (this.#file !== null && fstatSync(this.#file).nlink > 0) return this.#file;
    if (this.#file !== null) closeSync(this.#file);
    this.#file = openSync(this.#options.path, "a+");
    this.#offset = 0;
    return this.#file;
  }

  #changed(): void {
    this.#guard(() => {
      const removed = this.#file !== null && fstatSync(this.#file).nlink === 0;
      if (removed && this.#watcher !== null) {
        this.deafen();
        this.listen();
        // What was told between the removal and now was not heard.
        this.#options.hear(anything);
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
    const buffer = Buffer.alloc(size - this.#offset);
    const length = readSync(file, buffer, 0, buffer.length, this.#offset);
    const end = buffer.subarray(0, length).lastIndexOf(0x0a) + 1;
    this.#offset += end;
    const lines = buffer.toString("utf8", 0, end).split("\n");
    return lines.flatMap((line) => this.#parse(line));
  }

  #parse(line: string): readonly Notice[] {
    if (line === "") return [];
    try {
      const told: { namespace: unknown; sender: unknown; notices: Notice[] } = JSON.parse(line);
      const foreign = told.namespace !== this.#options.namespace || told.sender === this.#options.sender;
      return foreign ? [] : told.notices;
    } catch {
      // A line torn by the file starting over: it may have said anything.
      return anything;
    }
  }

  /** A hint that cannot be given or heard is made up for by polling; it must not fail what was committed. */
  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#options.failed(error);
  }
}
