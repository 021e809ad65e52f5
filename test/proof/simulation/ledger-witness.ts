import assert from "node:assert";
import type { StoredJob } from "../../../src/store/jobs.ts";
import type {
  FireParams,
  FireResult,
  OccurrenceRecord,
  PutScheduleParams,
  PutScheduleResult,
  ScheduleRecord,
} from "../../../src/store/schedules.ts";
import type { Store } from "../../../src/store/store.ts";
import type { History } from "./history.ts";

/** A rule as long as it stands: its times from `from` on belong to it. */
interface Rule {
  readonly everyMs: number;
  readonly from: number;
}

const everything = { from: new Date(0), to: new Date(8.64e15), limit: 100_000 } as const;

/** Stands beside the store's schedules, looks at the ledger after each call that may have changed it, and judges the change by an oracle of its own. */
export class LedgerWitness {
  readonly #store: Store;
  readonly #history: History;
  readonly #records = new Map<string, ScheduleRecord>();
  readonly #rules = new Map<string, Rule>();
  readonly #rows = new Map<string, ReadonlyMap<number, OccurrenceRecord>>();

  constructor(store: Store, history: History) {
    this.#store = store;
    this.#history = history;
  }

  /** How many occurrences were planned, and how many rows say that some were not. */
  get counts(): { readonly planned: number; readonly skipped: number } {
    const rows = [...this.#rows.values()].flatMap((ledger) => [...ledger.values()]);
    const planned = rows.filter(({ fate }) => fate === "planned").length;
    return { planned, skipped: rows.length - planned };
  }

  async apply(verb: string, params: unknown, result: unknown, jobs: ReadonlyMap<string, StoredJob>) {
    switch (verb) {
      case "putSchedule":
        return this.#put(params as PutScheduleParams, result as PutScheduleResult, jobs);
      case "removeSchedule":
        return this.#removed((params as { readonly key: string }).key);
      case "fire":
        return this.#fired(params as FireParams, result as FireResult[], jobs);
    }
  }

  async #put(params: PutScheduleParams, { outcome, schedule }: PutScheduleResult, jobs: Jobs): Promise<void> {
    const { key, spec, paused, nextAt, ifVersion, ifNextAt } = params;
    const before = this.#records.get(key);
    this.#history.tell("store", `schedule ${key}: ${outcome}, ${paused ? "paused, " : ""}${spec}`);
    const isSame =
      ifVersion === (before?.version ?? null) &&
      (before === undefined || before.nextAt?.getTime() === ifNextAt?.getTime());
    if ((outcome === "put") !== isSame)
      this.#history.violate("an edit counts only if nothing changed since it was read", `${key}: ${outcome}`);
    if (outcome !== "put" || schedule === null) return;
    if (before !== undefined) this.#checkCovered(before);
    this.#records.set(key, schedule);
    if (before?.spec !== spec)
      this.#rules.set(key, { everyMs: everyMsOf(spec), from: nextAt?.getTime() ?? Infinity });
    await this.#look(key, jobs, false);
  }

  #removed(key: string): void {
    const record = this.#records.get(key);
    this.#history.tell("store", `schedule ${key}: removed`);
    if (record !== undefined) this.#checkCovered(record);
    this.#records.delete(key);
    this.#rules.delete(key);
  }

  async #fired({ fires }: FireParams, results: readonly FireResult[], jobs: Jobs): Promise<void> {
    for (const [index, fire] of fires.entries()) {
      const record = this.#records.get(fire.key);
      const fired = results[index]?.outcome === "fired";
      const rightful =
        record !== undefined &&
        record.version === fire.version &&
        record.nextAt?.getTime() === fire.nextAt?.getTime() &&
        (!record.paused || fire.replaceSkipped);
      const what = fire.occurrences.map(({ fireAt, fate }) => `${fate} ${fireAt.toISOString()}`).join(", ");
      this.#history.tell("store", `fire ${fire.key}: ${fired ? "fired" : "stale"}, ${what}`);
      if (fired !== rightful)
        this.#history.violate("a plan counts only under the version and the time it rests on", fire.key);
      if (!fired || record === undefined) continue;
      this.#records.set(fire.key, { ...record, nextAt: fire.advanceTo });
      await this.#look(fire.key, jobs, fire.replaceSkipped);
    }
  }

  async #look(key: string, jobs: Jobs, mayReplace: boolean): Promise<void> {
    const before = this.#rows.get(key) ?? new Map<number, OccurrenceRecord>();
    const found = await this.#store.occurrences({ key, ...everything });
    const rows = new Map(found.map((row) => [row.fireAt.getTime(), row]));
    this.#rows.set(key, rows);
    for (const [at, old] of before) {
      const now = rows.get(at);
      const replaced = mayReplace && old.fate === "skipped" && now?.fate === "planned";
      if (now === undefined || (!replaced && now.fate !== old.fate))
        this.#history.violate("what the ledger says stays", `${key} at ${old.fireAt.toISOString()}`);
    }
    for (const [at, row] of rows) if (!before.has(at)) this.#checkRow(row, jobs);
    const record = this.#records.get(key);
    if (record !== undefined) this.#checkCovered(record);
  }

  #checkRow({ key, fireAt, fate, jobId, plannedAt, reason }: OccurrenceRecord, jobs: Jobs): void {
    const iso = fireAt.toISOString();
    if (fireAt > plannedAt) this.#history.violate("no occurrence is planned early", `${key} at ${iso}`);
    if (fate === "skipped" && reason === null)
      this.#history.violate("what is skipped has its reason", `${key} at ${iso}`);
    if (fate === "planned" && (jobId !== `{${key}}@${iso}` || !jobs.has(jobId)))
      this.#history.violate("a planned occurrence has its job", `${key} at ${iso}: ${jobId}`);
  }

  /** Whatever the schedule has left behind it is accounted for, by one row each. */
  #checkCovered({ key, nextAt }: ScheduleRecord): void {
    const rule = this.#rules.get(key);
    if (rule === undefined || nextAt === null) return;
    const rows = [...(this.#rows.get(key)?.values() ?? [])];
    for (let at = rule.from; at < nextAt.getTime(); at += rule.everyMs) {
      const accounting = rows.filter(
        ({ fireAt, until }) => fireAt.getTime() <= at && at <= (until ?? fireAt).getTime(),
      ).length;
      if (accounting === 1) continue;
      const detail = `${key} at ${new Date(at).toISOString()} has ${accounting}, and goes on at ${nextAt.toISOString()}`;
      this.#history.violate("one row accounts for each occurrence", detail);
    }
  }

  /** Once nothing goes wrong any more, planners keep up. */
  judgeLateness(nowMs: number, mostLateMs: number): void {
    for (const { key, nextAt, paused } of this.#records.values()) {
      if (paused || nextAt === null || nextAt.getTime() >= nowMs - mostLateMs) continue;
      const detail = `${key} is ${nowMs - nextAt.getTime()} ms late in the quiet`;
      this.#history.violate("what is due on a schedule is planned", detail);
    }
  }
}

type Jobs = ReadonlyMap<string, StoredJob>;

function everyMsOf(spec: string): number {
  const { every } = JSON.parse(spec) as { readonly every?: unknown };
  assert(typeof every === "number", `expected a rule of every so many milliseconds, got ${spec}`);
  return every;
}
