import { crc32 } from "node:zlib";
import { slotOf } from "../id.ts";
import type { JobState } from "../job.ts";
import { isTerminal } from "../state.ts";
import type { NewJob } from "../store/jobs.ts";
import type { Fire, NewOccurrence, ScheduleRecord } from "../store/schedules.ts";
import { type Decision, decideDue } from "./due.ts";
import { unreadable } from "./parse-object.ts";
import { decodeSpec, resolveSchedule, type ScheduleRules } from "./schedule-spec.ts";
import { decodeTemplate, type JobTemplate } from "./template.ts";

/** A schedule's next time is later than its creation; clocks may be set. */
const longestBeforeMs = 366 * 86_400_000;

/** What the plan for a schedule is based on, in addition to its own record. */
export interface PlanFacts {
  /** The store's clock. */
  readonly now: number;
  /** The state of the schedule's last job; null when there is none, or it is no longer kept. */
  readonly previous: JobState | null;
  /** Names that this configuration does not allow. */
  readonly disallow: readonly string[];
}

export interface Plan {
  readonly fire: Fire;
  /** The job to be cancelled first, by `overlap: "replace"`. */
  readonly replaces: string | null;
  /** More is due: plan again soon. */
  readonly more: boolean;
}

/** Decides about everything that is due on a schedule. Pure: the store arbitrates whose plan counts. */
export function planSchedule(record: ScheduleRecord, facts: PlanFacts): Plan {
  const rules = resolveSchedule(decodeSpec(record.spec));
  const template = decodeTemplate(record.job);
  const nextAt = record.nextAt?.getTime() ?? facts.now + 1;
  // What is due since before the schedule was made would take years to fire.
  if (nextAt < record.createdAt.getTime() - longestBeforeMs)
    throw unreadable("nextAt", `${record.nextAt?.toISOString()} is long before the schedule was created`);
  const { decisions, advanceTo, more } = decideDue(rules, nextAt, facts.now);
  const left = rules.limit === null ? Number.POSITIVE_INFINITY : rules.limit - record.fired;
  const builder = new Builder(record, rules, template, facts, left);
  const occurrences = decisions.flatMap((decision) => builder.build(decision));
  const exhausted = builder.left <= 0;
  return {
    fire: {
      key: record.key,
      version: record.version,
      nextAt: record.nextAt,
      occurrences,
      advanceTo: exhausted || advanceTo === null ? null : new Date(advanceTo),
      replaceSkipped: false,
    },
    replaces: builder.replaces,
    more: more && !exhausted,
  };
}

/** Turns decisions into ledger rows and jobs, each seeing what the one before it has planned. */
class Builder {
  readonly #record: ScheduleRecord;
  readonly #rules: ScheduleRules;
  readonly #template: JobTemplate;
  readonly #facts: PlanFacts;
  #previousId: string | null;
  #previousState: JobState | null;
  left: number;
  replaces: string | null = null;

  constructor(
    record: ScheduleRecord,
    rules: ScheduleRules,
    template: JobTemplate,
    facts: PlanFacts,
    left: number,
  ) {
    this.#record = record;
    this.#rules = rules;
    this.#template = template;
    this.#facts = facts;
    this.#previousId = record.lastJobId;
    this.#previousState = facts.previous;
    this.left = left;
  }

  build(decision: Decision): NewOccurrence[] {
    if (this.left <= 0) return [];
    if (decision.fate === "skipped") {
      const { fireAt, until, count, reason } = decision;
      return [skippedOccurrence(fireAt, count === 1 ? null : until, count, reason)];
    }
    const obstacle = this.#obstacle();
    if (obstacle !== null) return [skippedOccurrence(decision.fireAt, null, 1, obstacle)];
    this.left -= 1;
    const job = occurrenceJob(
      this.#record.key,
      decision.fireAt,
      this.#template,
      this.#rules.jitterMs,
      this.#waitsFor(),
    );
    this.#previousId = job.id;
    this.#previousState = "waiting";
    return [plannedOccurrence(job, decision.fireAt)];
  }

  /** Why an occurrence that is due must not be planned; null when nothing prevents it. */
  #obstacle(): string | null {
    if (this.#facts.disallow.includes(this.#template.name)) return "disallowed by configuration";
    if (!this.#isPreviousPending()) return null;
    const { overlap } = this.#rules;
    if (overlap === "skip") return `overlap: the previous job is still ${this.#previousState}`;
    if (overlap === "queue-one" && this.#previousState !== "active") return "overlap: one is queued already";
    return null;
  }

  /** The job after which the next one starts, so two never run at once. */
  #waitsFor(): string | null {
    const { overlap } = this.#rules;
    if (overlap === "allow" || overlap === "skip" || !this.#isPreviousPending()) return null;
    if (overlap === "replace" && this.#previousId === this.#record.lastJobId)
      this.replaces = this.#previousId;
    return this.#previousId;
  }

  #isPreviousPending(): boolean {
    return this.#previousState !== null && !isTerminal(this.#previousState);
  }
}

export function skippedOccurrence(
  fireAt: number,
  until: number | null,
  count: number,
  reason: string,
): NewOccurrence {
  return {
    fireAt: new Date(fireAt),
    until: until === null ? null : new Date(until),
    count,
    fate: "skipped",
    reason,
    job: null,
  };
}

export function plannedOccurrence(job: NewJob, fireAt: number): NewOccurrence {
  return { fireAt: new Date(fireAt), until: null, count: 1, fate: "planned", reason: null, job };
}

/** The job of an occurrence. Its id is made of schedule and time, and lives in the schedule's slot. */
export function occurrenceJob(
  key: string,
  fireAt: number,
  template: JobTemplate,
  jitterMs: number,
  after: string | null,
): NewJob {
  const at = new Date(fireAt);
  const id = `{${key}}@${at.toISOString()}`;
  return {
    ...template,
    id,
    // Stable: the same schedule is late by the same share each time.
    runAt: jitterMs === 0 ? at : new Date(fireAt + (crc32(key) % jitterMs)),
    delayMs: 0,
    fireAt: at,
    schedule: key,
    slot: slotOf(id),
    after: after === null ? [] : [after],
    afterFailure: "run",
  };
}
