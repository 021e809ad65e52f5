import type { NewJob } from "./jobs.ts";

/** Schedules, and the ledger that accounts for every occurrence. */
export interface ScheduleVerbs {
  /**
   * Creates or edits a schedule by compare-and-set on version and nextAt, and writes the ledger rows in `skipped` with
   * it. An edit keeps fired and lastJobId. `conflict`: another edit or firing came first; `schedule` is the current one,
   * null if it is gone.
   */
  putSchedule(params: PutScheduleParams): Promise<PutScheduleResult>;

  /** Removes a schedule; false if there was none. Its jobs and its ledger stay. */
  removeSchedule(params: { readonly key: string }): Promise<boolean>;

  /** Schedules by key; null: all of them. */
  schedules(params: { readonly keys: readonly string[] | null }): Promise<ScheduleRecord[]>;

  /** Schedules whose next occurrence is due. */
  dueSchedules(params: { readonly limit: number }): Promise<DueSchedules>;

  /**
   * Fires schedules one by one, in the order given: a stale one does not block the others. Inserts the occurrences and
   * their jobs, advances nextAt, adds the planned ones to `fired` and records the last one's job, if key, version and the
   * old nextAt still match and the schedule is not paused. Otherwise it is `stale` and nothing changes. An occurrence
   * already in the ledger keeps its row and adds no job, unless it was skipped and `replaceSkipped` is set: then it is
   * planned now.
   */
  fire(params: FireParams): Promise<FireResult[]>;

  /** The ledger of one schedule, by fireAt. */
  occurrences(params: OccurrencesParams): Promise<OccurrenceRecord[]>;
}

/** A schedule as the store keeps it; what `spec` and `job` mean is up to the core. */
export interface ScheduleRecord {
  readonly key: string;
  /** JSON. */
  readonly spec: string;
  /** JSON: the template of its jobs. */
  readonly job: string;
  readonly paused: boolean;
  /** The nominal time of the next occurrence; null when there is none. */
  readonly nextAt: Date | null;
  /**
   * Rises with every edit, pause and resume, even across a removal (no version of a key occurs twice). Firing does not
   * raise it.
   */
  readonly version: number;
  /** How many occurrences it has planned so far. */
  readonly fired: number;
  /** The job of the occurrence that was planned last. */
  readonly lastJobId: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface PutScheduleParams {
  readonly key: string;
  readonly spec: string;
  readonly job: string;
  readonly paused: boolean;
  readonly nextAt: Date | null;
  /** The version that this edit is based on; null means there must be none yet. */
  readonly ifVersion: number | null;
  /** The nextAt at that version, so an edit does not undo a firing since. Not checked where there must be none yet. */
  readonly ifNextAt: Date | null;
  /** What was skipped while the schedule was paused. A row that is there already stays. */
  readonly skipped: readonly NewOccurrence[];
  readonly node: string;
}

export interface PutScheduleResult {
  readonly outcome: "put" | "conflict";
  readonly schedule: ScheduleRecord | null;
}

export interface DueSchedules {
  readonly now: Date;
  /** Not paused, nextAt <= now, oldest first. */
  readonly due: readonly ScheduleRecord[];
  /** The earliest nextAt after now of a schedule that is not paused. */
  readonly nextAt: Date | null;
}

export type OccurrenceFate = "planned" | "skipped";

export interface NewOccurrence {
  readonly fireAt: Date;
  /** For a row that accounts for a range: its last nominal time and how many there were. */
  readonly until: Date | null;
  readonly count: number;
  readonly fate: OccurrenceFate;
  readonly reason: string | null;
  /** Null for skipped ones. */
  readonly job: NewJob | null;
}

export interface FireParams {
  readonly node: string;
  readonly fires: readonly Fire[];
}

export interface Fire {
  readonly key: string;
  readonly version: number;
  readonly nextAt: Date | null;
  readonly occurrences: readonly NewOccurrence[];
  readonly advanceTo: Date | null;
  /** For backfills, which a paused schedule allows too: they leave nextAt as it is. */
  readonly replaceSkipped: boolean;
}

export interface FireResult {
  readonly outcome: "fired" | "stale";
  /** For each occurrence; empty when stale. */
  readonly occurrences: readonly ("added" | "existing")[];
}

export interface OccurrencesParams {
  readonly key: string;
  /** Inclusive. */
  readonly from: Date;
  /** Exclusive. */
  readonly to: Date;
  readonly limit: number;
}

export interface OccurrenceRecord {
  readonly key: string;
  readonly fireAt: Date;
  readonly until: Date | null;
  readonly count: number;
  readonly fate: OccurrenceFate;
  readonly reason: string | null;
  readonly jobId: string | null;
  readonly plannedAt: Date;
  readonly node: string;
}
