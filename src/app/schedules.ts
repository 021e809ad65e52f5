import type { Client } from "../client/client.ts";
import type { Connection } from "../client/connection.ts";
import type { AnyDefinition, JobDefinition } from "../definition.ts";
import type { EnqueueOptions } from "../enqueue.ts";
import { EscapementError } from "../errors.ts";
import { slotOf } from "../id.ts";
import { checkName } from "../names.ts";
import { checkDate, checkInteger, checkKnown, checkOneOf } from "../options.ts";
import { planSchedule } from "../planner/plan.ts";
import { cancelReplaced } from "../planner/replace.ts";
import {
  decodeSpec,
  encodeSpec,
  resolveSchedule,
  type ScheduleRules,
  type ScheduleSpec,
} from "../planner/schedule-spec.ts";
import { decodeTemplate, encodeTemplate } from "../planner/template.ts";
import type { EnqueueReceipt } from "../receipt.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { withRetries } from "../runtime/transient.ts";
import { type ScheduleConflict, type Settings, scheduleConflicts } from "../settings.ts";
import type { NewOccurrence, PutScheduleResult, ScheduleRecord } from "../store/schedules.ts";
import type { Store } from "../store/store.ts";
import { withTrace } from "../telemetry/trace.ts";
import { type BackfillOptions, backfillSchedule } from "./backfill.ts";
import { type Occurrence, readOccurrences } from "./occurrences.ts";
import { pausedOccurrences } from "./paused.ts";
import { decodeSchedule, isReadable, type Schedule } from "./schedule.ts";

export interface ScheduleOptions extends Pick<EnqueueOptions, "priority" | "tags" | "expireIn" | "attempts"> {
  /** What to do when the store has another one under this key. @default the app's `scheduleConflict` */
  readonly conflict?: ScheduleConflict;
}

/** `added`, `changed`, `unchanged`; `kept` when the store's stays, by the conflict policy. */
export type ScheduleOutcome = "added" | "changed" | "unchanged" | "kept";

export interface OccurrencesOptions {
  /** @default a day ago */
  readonly from?: Date;
  /** Exclusive. @default now */
  readonly to?: Date;
  /** @default 1000 */
  readonly limit?: number;
}

/** How often an edit is retried when others, or the planner, were faster. */
const maxAttempts = 20;
/** How many steps of catching up an edit waits for. */
const maxFired = 1_000;
/** How many rows that a pause must not write again are looked for: what was fired, or filled in, while it was being made or stood. */
const maxAccounted = 10_000;
/** How schedules are made. A job whose input may be undefined needs none. */
export interface ScheduleVerb {
  /** Changes when a schedule fires; its job stays as the store has it, so a process that does not define that job can do it. */
  (key: string, spec: ScheduleSpec, job: null): Promise<ScheduleOutcome>;
  (
    key: string,
    spec: ScheduleSpec,
    job: JobDefinition<undefined> | string,
    input?: unknown,
    options?: ScheduleOptions,
  ): Promise<ScheduleOutcome>;
  <Input>(
    key: string,
    spec: ScheduleSpec,
    job: JobDefinition<Input>,
    input: NoInfer<Input>,
    options?: ScheduleOptions,
  ): Promise<ScheduleOutcome>;
}

const optionKeys = ["priority", "tags", "expireIn", "attempts", "conflict"];

/** Makes, changes and answers questions about schedules. Every change is a compare-and-set on the version and the next time it rests on. */
export class Schedules {
  readonly #connection: Connection;
  readonly #client: Client;
  readonly #settings: Settings;
  readonly #runtime: Runtime;
  readonly #node: string;
  /** What this process has scheduled, to notice when it schedules two things under one key. */
  readonly #own = new Map<string, string>();

  constructor(connection: Connection, client: Client, settings: Settings, runtime: Runtime, node: string) {
    this.#connection = connection;
    this.#client = client;
    this.#settings = settings;
    this.#runtime = runtime;
    this.#node = node;
  }

  /** Any definition, whatever its input: the type says what goes with what. */
  readonly schedule: ScheduleVerb = (
    key: string,
    spec: ScheduleSpec,
    job: AnyDefinition | string | null,
    input?: unknown,
    options: ScheduleOptions = {},
  ) => (job === null ? this.#changeRule(key, spec) : this.put(key, spec, job, input, options));

  async put(
    key: string,
    spec: ScheduleSpec,
    definition: AnyDefinition | string,
    input: unknown,
    options: ScheduleOptions,
  ): Promise<ScheduleOutcome> {
    checkScheduleKey(key);
    checkKnown(options, optionKeys, "schedule");
    const conflict = checkOneOf(
      options.conflict ?? this.#settings.scheduleConflict,
      scheduleConflicts,
      "conflict",
    );
    const rules = resolveSchedule(spec);
    const { conflict: _conflict, ...own } = options;
    const wanted = {
      spec: encodeSpec(spec),
      job: encodeTemplate(await this.#client.makeJob({ target: definition, input, options: own })),
    };
    this.#noteOwn(key, wanted);
    return this.#replace(key, rules, wanted, (record) => {
      this.#checkConflict(record, wanted.job, conflict, options.conflict !== undefined);
      return conflict !== "store-wins";
    });
  }

  async #changeRule(key: string, spec: ScheduleSpec): Promise<ScheduleOutcome> {
    const rules = resolveSchedule(spec);
    await this.#findKnown(key);
    return this.#replace(key, rules, { spec: encodeSpec(spec), job: null }, () => true);
  }

  /** @param mayChange asked about the record in the store; false keeps it. Without a job, the record's stays. */
  async #replace(
    key: string,
    rules: ScheduleRules,
    wanted: { readonly spec: string; readonly job: string | null },
    mayChange: (record: ScheduleRecord) => boolean,
  ): Promise<ScheduleOutcome> {
    let fired = 0;
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const { store, now, record } = await this.#find(key);
      const job = wanted.job ?? record?.job;
      if (job === undefined) throw unknownSchedule(key);
      if (record !== null && record.spec === wanted.spec && record.job === job) return "unchanged";
      if (record !== null) {
        if (!mayChange(record)) return "kept";
        // What is due under the old rules is fired under them: an edit loses nothing.
        if (isReadable(record) && (await this.#fireDue(store, record, now))) {
          attempt -= fired < maxFired ? 1 : 0;
          fired += 1;
          continue;
        }
      }
      const nextAt = rules.times.next(now);
      if (nextAt === null) throw neverFires(key);
      // What a pause has skipped so far was skipped under the old rules, and is recorded as that.
      const skipped =
        record?.paused === true && isReadable(record) ? await this.#pausedSoFar(store, record, now) : [];
      const change = {
        spec: wanted.spec,
        job,
        paused: record?.paused ?? false,
        nextAt: new Date(nextAt),
        skipped,
      };
      if ((await this.#edit(store, key, record, change)).outcome === "put")
        return record === null ? "added" : "changed";
    }
    throw contended(key);
  }

  /** Refuses what {@link put} would refuse, without changing anything. */
  async check(
    key: string,
    spec: ScheduleSpec,
    definition: AnyDefinition | string,
    input: unknown,
    options: ScheduleOptions,
  ): Promise<void> {
    checkScheduleKey(key);
    checkKnown(options, optionKeys, "schedule");
    resolveSchedule(spec);
    const { conflict: _conflict, ...own } = options;
    await this.#client.makeJob({ target: definition, input, options: own });
  }

  async remove(key: string): Promise<boolean> {
    checkScheduleKey(key);
    this.#own.delete(key);
    const store = await this.#connection.store();
    return withRetries(this.#runtime, () => store.removeSchedule({ key }));
  }

  /** Nothing fires until it is resumed; what would have is recorded then, as skipped. */
  pause(key: string): Promise<Schedule> {
    return this.#change(key, async (record) =>
      record.paused ? null : { ...record, paused: true, skipped: [] },
    );
  }

  resume(key: string): Promise<Schedule> {
    return this.#change(key, async (record, now, store) => {
      if (!record.paused) return null;
      const next = resolveSchedule(decodeSpec(record.spec)).times.next(now);
      const nextAt = record.nextAt === null || next === null ? null : new Date(next);
      const skipped = await this.#pausedSoFar(store, record, now);
      return { ...record, paused: false, nextAt, skipped };
    });
  }

  async #pausedSoFar(store: Store, record: ScheduleRecord, now: number): Promise<NewOccurrence[]> {
    const { key, nextAt, spec } = record;
    if (nextAt === null) return [];
    const span = { from: nextAt, to: new Date(now + 1), limit: maxAccounted };
    const rows = await withRetries(this.#runtime, () => store.occurrences({ key, ...span }));
    return pausedOccurrences(resolveSchedule(decodeSpec(spec)).times, nextAt, now, rows);
  }

  /** Runs the schedule's job once, now, beside its regular occurrences. */
  async trigger(key: string): Promise<EnqueueReceipt> {
    const { record } = await this.#findKnown(key);
    const id = this.#runtime.newId();
    const template = decodeTemplate(record.job);
    return this.#client.add({
      ...template,
      tags: withTrace(template.tags, this.#settings.telemetry?.current() ?? null),
      id,
      runAt: null,
      delayMs: 0,
      fireAt: null,
      // It is not an occurrence: its key is made of its own id, so two triggers are two jobs.
      schedule: null,
      slot: slotOf(id),
      after: [],
      afterFailure: "cancel",
    });
  }

  /** Plans what a schedule skipped, or never had, in a span of the past. Returns how many were planned. */
  async backfill(key: string, from: Date, to: Date, options: BackfillOptions): Promise<number> {
    checkKnown(options, ["onProgress"], "backfill");
    checkDate(from, "from");
    checkDate(to, "to");
    return backfillSchedule({
      ...options,
      find: () => this.#findKnown(key),
      from: from.getTime(),
      to: to.getTime(),
      keptMs: this.#settings.retention.occurrencesMs,
      node: this.#node,
    });
  }

  async list(): Promise<Schedule[]> {
    const store = await this.#connection.store();
    return (await withRetries(this.#runtime, () => store.schedules({ keys: null }))).map(decodeSchedule);
  }

  async get(key: string): Promise<Schedule | null> {
    const { record } = await this.#find(checkScheduleKey(key));
    return record === null ? null : decodeSchedule(record);
  }

  async occurrences(key: string, options: OccurrencesOptions): Promise<Occurrence[]> {
    checkKnown(options, ["from", "to", "limit"], "occurrences");
    const { store, now } = await this.#find(checkScheduleKey(key));
    const to = options.to === undefined ? new Date(now + 1) : checkDate(options.to, "to");
    const from =
      options.from === undefined ? new Date(to.getTime() - 86_400_000) : checkDate(options.from, "from");
    const limit = checkInteger(options.limit ?? 1_000, 1, 100_000, "limit");
    return withRetries(this.#runtime, () => readOccurrences(store, { key, from, to, limit }));
  }

  async #change(
    key: string,
    decide: (
      record: ScheduleRecord,
      now: number,
      store: Store,
    ) => Promise<(Change & Pick<Edit, "skipped">) | null>,
  ): Promise<Schedule> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const { store, now, record } = await this.#findKnown(key);
      const change = await decide(record, now, store);
      if (change === null) return decodeSchedule(record);
      const { outcome, schedule } = await this.#edit(store, key, record, change);
      if (outcome === "put" && schedule !== null) return decodeSchedule(schedule);
    }
    throw contended(key);
  }

  #edit(
    store: Store,
    key: string,
    record: ScheduleRecord | null,
    change: Change & Partial<Edit>,
  ): Promise<PutScheduleResult> {
    const { spec, job, paused, nextAt, skipped = [] } = change;
    const rests = { ifVersion: record?.version ?? null, ifNextAt: record?.nextAt ?? null };
    return store.putSchedule({ key, spec, job, paused, nextAt, skipped, ...rests, node: this.#node });
  }

  /** Fires what is due on a schedule that is about to change; true when there was something, and it must be read again. */
  async #fireDue(store: Store, record: ScheduleRecord, now: number): Promise<boolean> {
    if (record.paused || record.nextAt === null || record.nextAt.getTime() > now) return false;
    const [last] = record.lastJobId === null ? [] : await store.get({ ids: [record.lastJobId] });
    const facts = { now, previous: last?.state ?? null, disallow: this.#settings.disallow };
    const { fire, replaces } = planSchedule(record, facts);
    await cancelReplaced(store, replaces === null ? [] : [replaces]);
    await store.fire({ node: this.#node, fires: [fire] });
    return true;
  }

  async #find(key: string): Promise<{ store: Store; now: number; record: ScheduleRecord | null }> {
    const store = await this.#connection.store();
    return withRetries(this.#runtime, async () => {
      // The time last: an edit by an older one would overwrite what the record says has fired.
      const [record] = await store.schedules({ keys: [key] });
      const { now } = await store.dueSchedules({ limit: 0 });
      return { store, now: now.getTime(), record: record ?? null };
    });
  }

  async #findKnown(key: string): Promise<{ store: Store; now: number; record: ScheduleRecord }> {
    const { store, now, record } = await this.#find(checkScheduleKey(key));
    if (record === null) throw unknownSchedule(key);
    return { store, now, record };
  }

  #noteOwn(key: string, wanted: { spec: string; job: string }): void {
    const name = decodeTemplate(wanted.job).name;
    const known = this.#own.get(key);
    if (known !== undefined && known !== name) {
      throw new EscapementError(
        "schedule-conflict",
        `schedule ${JSON.stringify(key)} was created for job ${JSON.stringify(known)} in this process, and now for ${JSON.stringify(name)}; give one of them another key`,
      );
    }
    this.#own.set(key, name);
  }

  #checkConflict(record: ScheduleRecord, job: string, conflict: ScheduleConflict, isExplicit: boolean): void {
    const wanted = decodeTemplate(job).name;
    const stored = isReadable(record) ? decodeTemplate(record.job).name : wanted;
    // Another job under the same key is more likely a mistake than an edit, so it must be asked for by name.
    if (stored !== wanted && !isExplicit) {
      throw new EscapementError(
        "schedule-conflict",
        `schedule ${JSON.stringify(record.key)} is for job ${JSON.stringify(stored)} in the store, and here for ${JSON.stringify(wanted)}; use another key, or pass conflict: "code-wins"`,
      );
    }
    if (conflict === "error") {
      throw new EscapementError(
        "schedule-conflict",
        `schedule ${JSON.stringify(record.key)} differs from the one in the store, and scheduleConflict is "error"; another node has different code, or the change must be made with conflict: "code-wins"`,
      );
    }
  }
}

type Change = Pick<ScheduleRecord, "spec" | "job" | "paused" | "nextAt">;
type Edit = Pick<Parameters<Store["putSchedule"]>[0], "skipped">;

/** In the ids of their jobs keys are in braces, so they contain none themselves. */
function checkScheduleKey(key: unknown): string {
  const checked = checkName(key, "the key of a schedule");
  if (!/[{}]/.test(checked)) return checked;
  throw new EscapementError(
    "invalid-name",
    `expected the key of a schedule to have no braces, got ${JSON.stringify(checked)}`,
  );
}

function unknownSchedule(key: string): EscapementError {
  return new EscapementError("not-found", `there is no schedule ${JSON.stringify(key)}`);
}

function neverFires(key: string): EscapementError {
  return new EscapementError(
    "invalid-schedule",
    `schedule ${JSON.stringify(key)} would never fire: it has no time in the future`,
  );
}

function contended(key: string): EscapementError {
  return new EscapementError(
    "store-busy",
    `schedule ${JSON.stringify(key)} keeps being changed by others; try again`,
  );
}
