import { existsSync, unwatchFile, watchFile } from "node:fs";
import { join } from "node:path";
import { describe, EscapementError } from "../errors.ts";
import type { Emit } from "../events.ts";
import { instantExample, parseInstant } from "../instant.ts";
import { checkKnown } from "../options.ts";
import type { ScheduleSpec } from "../planner/schedule-spec.ts";
import { readSmallFile } from "../runtime/small-file.ts";
import { parseYaml } from "./parse-yaml.ts";
import type { ScheduleOptions, Schedules } from "./schedules.ts";

const fileNames = ["escapement.schedules.yaml", "escapement.schedules.yml", "escapement.schedules.json"];
const optionKeys: readonly string[] = ["priority", "tags", "expireIn", "attempts", "conflict"];
const dateKeys: readonly string[] = ["at", "startAt", "endAt"];
/** How often the file is checked. */
const watchMs = 2_000;

interface Entry {
  readonly key: string;
  readonly job: string;
  readonly input: unknown;
  readonly spec: ScheduleSpec;
  readonly options: ScheduleOptions;
}

/** The file of schedules in a folder, if there is one. */
export function findScheduleFile(folder: string): string | null {
  return fileNames.map((name) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}

/** Keeps the schedules of a file in the store: at the start, and whenever the file changes. */
export class ScheduleFile {
  readonly #path: string;
  readonly #schedules: Schedules;
  readonly #emit: Emit;
  #keys: ReadonlySet<string> = new Set();
  #loading: Promise<void> = Promise.resolve();

  constructor(path: string, schedules: Schedules, emit: Emit) {
    this.#path = path;
    this.#schedules = schedules;
    this.#emit = emit;
  }

  async start(): Promise<void> {
    await this.#load();
    watchFile(this.#path, { interval: watchMs, persistent: false }, () => {
      this.#loading = this.#loading.then(() => this.#reload());
    });
  }

  async stop(): Promise<void> {
    unwatchFile(this.#path);
    await this.#loading;
  }

  /** A file that is wrong, or half written, changes nothing. */
  async #reload(): Promise<void> {
    try {
      await this.#load();
    } catch (error) {
      this.#emit("error", { error, during: `reading ${this.#path}` });
    }
  }

  /** All of the file is checked before any of it is written. A job that this process does not know is another process's to schedule. */
  async #checked(entries: readonly Entry[]): Promise<Entry[]> {
    const known: Entry[] = [];
    for (const entry of entries) {
      try {
        await this.#schedules.check(entry.key, entry.spec, entry.job, entry.input, entry.options);
        known.push(entry);
      } catch (error) {
        const { code, message } = error as EscapementError;
        const named = new EscapementError(code, `${this.#path}: ${entry.key}: ${message}`, { cause: error });
        if (code !== "unknown-job") throw named;
        this.#emit("error", { error: named, during: "reading the schedule file" });
      }
    }
    return known;
  }

  async #load(): Promise<void> {
    const entries = await this.#checked(await readEntries(this.#path));
    for (const { key, spec, job, input, options } of entries) {
      await this.#schedules.put(key, spec, job, input, options);
    }
    const keys = new Set(entries.map(({ key }) => key));
    // What this process added from the file and the file no longer has is removed; what others created is theirs.
    for (const key of this.#keys) if (!keys.has(key)) await this.#schedules.remove(key);
    this.#keys = keys;
  }
}

/** Reads and checks the whole file before anything of it is used. */
export async function readEntries(path: string): Promise<Entry[]> {
  const fail = (why: string, cause?: unknown): never => {
    throw new EscapementError("invalid-schedule", `${path}: ${why}`, { cause });
  };
  let content: unknown;
  try {
    const text = readSmallFile(path);
    content = path.endsWith(".json") ? JSON.parse(text) : await parseYaml(text);
  } catch (error) {
    return fail(`it cannot be read: ${String(error)}`, error);
  }
  if (!isRecord(content) || !isRecord(content["schedules"])) {
    return fail("expected `schedules:` with a schedule under each key");
  }
  checkKnown(content, ["schedules"], path);
  return Object.entries(content["schedules"]).map(([key, value]) => {
    if (!isRecord(value) || typeof value["job"] !== "string")
      return fail(`expected ${key} to have a job, by its name`);
    return readEntry(key, value["job"], value, fail);
  });
}

function readEntry(
  key: string,
  job: string,
  value: Readonly<Record<string, unknown>>,
  fail: (why: string) => never,
): Entry {
  const { job: _job, input = null, ...rest } = value;
  const settings = Object.entries(rest).map(([name, setting]): [string, unknown] => {
    if (!dateKeys.includes(name)) return [name, setting];
    const date = typeof setting === "string" ? parseInstant(setting) : null;
    if (date === null)
      fail(`expected ${name} of ${key} to be a time such as ${instantExample}, got ${describe(setting)}`);
    return [name, date];
  });
  // Built from entries, a key `__proto__` is an unknown key and not a prototype.
  const options = Object.fromEntries(settings.filter(([name]) => optionKeys.includes(name)));
  const spec = Object.fromEntries(settings.filter(([name]) => !optionKeys.includes(name)));
  return { key, job, input, spec, options };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
