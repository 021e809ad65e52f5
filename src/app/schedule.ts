import { recordError } from "../errors.ts";
import { decodeSpec, resolveSchedule, type ScheduleSpec } from "../planner/schedule-spec.ts";
import { decodeTemplate, type JobTemplate } from "../planner/template.ts";
import type { ScheduleRecord } from "../store/schedules.ts";

/** A schedule, as `schedules()` shows it. */
export interface Schedule {
  readonly key: string;
  readonly spec: ScheduleSpec;
  /** The name of its jobs. */
  readonly name: string;
  readonly queue: string;
  readonly input: unknown;
  /** How its jobs are enqueued, beside what their definition says. */
  readonly priority: number;
  readonly tags: readonly string[];
  readonly expireInMs: number | null;
  readonly attempts: number;
  readonly paused: boolean;
  readonly nextAt: Date | null;
  readonly fired: number;
  readonly lastJobId: string | null;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /**
   * Why no planner of this version can fire it. Spec, name and what its jobs have are then empty if they cannot be read. Left out if it can be read.
   */
  readonly unreadable?: string;
}

type Shown = Pick<JobTemplate, "name" | "queue" | "input" | "priority" | "tags" | "expireInMs" | "attempts">;

const noTemplate: Shown = {
  name: "",
  queue: "",
  input: "null",
  priority: 0,
  tags: [],
  expireInMs: null,
  attempts: 0,
};

export function decodeSchedule(record: ScheduleRecord): Schedule {
  const { spec, job, ...rest } = record;
  const why = whyUnreadable(record);
  const template = orElse<Shown>(() => decodeTemplate(job), noTemplate);
  return {
    ...rest,
    spec: orElse(() => decodeSpec(spec), {}),
    name: template.name,
    queue: template.queue,
    input: orElse(() => JSON.parse(template.input) as unknown, null),
    priority: template.priority,
    tags: template.tags,
    expireInMs: template.expireInMs,
    attempts: template.attempts,
    ...(why === null ? {} : { unreadable: why }),
  };
}

export function isReadable(record: ScheduleRecord): boolean {
  return whyUnreadable(record) === null;
}

/** Null for a schedule that can be planned. */
function whyUnreadable({ spec, job }: Pick<ScheduleRecord, "spec" | "job">): string | null {
  try {
    resolveSchedule(decodeSpec(spec));
    decodeTemplate(job);
    return null;
  } catch (error) {
    return recordError(error).message;
  }
}

function orElse<T>(read: () => T, placeholder: T): T {
  try {
    return read();
  } catch {
    return placeholder;
  }
}
