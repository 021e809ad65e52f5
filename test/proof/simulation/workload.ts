import { Chance } from "../../../src/testing/chance.ts";

export type Kind = "plain" | "once" | "effect" | "keyed" | "rated" | "unique" | "debounced" | "timed";

/** What a handler does at one of its turns. */
export interface Act {
  /** How long each of its awaits takes. */
  readonly workMs: readonly number[];
  readonly ends: "return" | "throw" | "give-up" | "snooze" | "kill";
}

/** What a job's handler does: one act a turn, the last one again and again. It travels as the job's input. */
export interface Script {
  readonly acts: readonly Act[];
  /** Does not listen to its signal. */
  readonly deaf: boolean;
  /** Commits its effect also when it is told to stop. */
  readonly stubborn: boolean;
  /** Tells its progress. */
  readonly talks: boolean;
  /** An effect is tried once more when its reply was lost; or the handler fails after it. */
  readonly afterEffect: "return" | "throw" | "repeat";
  /** Enqueues another job with its effect. */
  readonly spawns: boolean;
  /** How long its transaction is open. */
  readonly effectMs: number;
  readonly key: string;
}

/** What a job that was enqueued with an effect does. */
export const spawnedScript: Script = {
  acts: [{ workMs: [], ends: "return" }],
  deaf: false,
  stubborn: false,
  talks: false,
  afterEffect: "return",
  spawns: false,
  effectMs: 0,
  key: "k0",
};

export function spawnedId(id: string): string {
  return `${id}-child`;
}

export interface PlannedJob {
  readonly at: number;
  readonly id: string;
  readonly kind: Kind;
  readonly script: Script;
  readonly delayMs: number;
  readonly priority: number;
  readonly expireInMs: number | null;
  readonly after: readonly string[];
  /** Its client waits for its result. */
  readonly awaited: boolean;
}

export type PlannedChange =
  | { readonly at: number; readonly kind: "cancel" | "redrive"; readonly id: string }
  | { readonly at: number; readonly kind: "again"; readonly job: PlannedJob }
  | { readonly at: number; readonly kind: "edit"; readonly job: PlannedJob; readonly delayMs: number | null }
  | { readonly at: number; readonly kind: "pause-queue"; readonly forMs: number }
  | { readonly at: number; readonly kind: "limit-queue"; readonly limit: number | null };

/** A schedule that a client makes, changes and takes away. */
export interface PlannedSchedule {
  readonly at: number;
  readonly key: string;
  readonly kind: Kind;
  readonly script: Script;
  readonly spec: PlannedSpec;
  readonly changes: readonly ScheduleChange[];
}

export interface PlannedSpec {
  readonly every: number;
  readonly misfire: "once" | "skip" | "all";
  readonly overlap: "allow" | "skip" | "queue-one" | "replace";
}

export type ScheduleChange =
  | { readonly at: number; readonly kind: "pause"; readonly forMs: number }
  | { readonly at: number; readonly kind: "edit"; readonly spec: PlannedSpec }
  | { readonly at: number; readonly kind: "remove" };

export interface Workload {
  readonly jobs: readonly PlannedJob[];
  readonly schedules: readonly PlannedSchedule[];
  readonly changes: readonly PlannedChange[];
}

export interface WorkloadShape {
  readonly leaseMs: number;
  /** When the last job comes. */
  readonly untilMs: number;
}

export function planWorkload(seed: number, shape: WorkloadShape): Workload {
  const chance = new Chance(seed, "workload");
  const jobs: PlannedJob[] = [];
  const count = chance.integer(15, 30);
  for (let index = 0; index < count; index += 1) jobs.push(planJob(index, chance, jobs, shape));
  const changes = Array.from({ length: chance.integer(3, 12) }, () => planChange(chance, jobs, shape));
  const schedules = planSchedules(new Chance(seed, "schedules"), shape);
  return { jobs, schedules, changes };
}

function planSchedules(chance: Chance, shape: WorkloadShape): PlannedSchedule[] {
  return Array.from({ length: chance.integer(0, 2) }, (_, index): PlannedSchedule => {
    const at = chance.real(0, shape.untilMs / 2);
    const changes = Array.from({ length: chance.integer(0, 3) }, () => planScheduleChange(chance, at, shape));
    return survivable({
      at,
      key: `s${index}`,
      kind: chance.pick(["plain", "once", "effect"]),
      script: quick(planScript(chance, shape)),
      spec: planSpec(chance),
      changes: changes.toSorted((a, b) => a.at - b.at),
    });
  });
}

/** Where each job of a schedule kills its process, they must not come faster than processes start: none would live to reap and plan. */
function survivable(schedule: PlannedSchedule): PlannedSchedule {
  if (!schedule.script.acts.some(({ ends }) => ends === "kill")) return schedule;
  const slow = (spec: PlannedSpec): PlannedSpec => ({ ...spec, every: slowestEvery });
  return {
    ...schedule,
    spec: slow(schedule.spec),
    changes: schedule.changes.map((change) =>
      change.kind === "edit" ? { ...change, spec: slow(change.spec) } : change,
    ),
  };
}

/** There is one every few seconds, and all of them must come to an end. */
function quick(script: Script): Script {
  const acts = script.acts.map((act) => ({ ...act, workMs: act.workMs.map((ms) => ms % 200) }));
  return { ...script, acts, spawns: false };
}

const slowestEvery = 9_000;

function planSpec(chance: Chance): PlannedSpec {
  return {
    every: chance.pick([1_500, 4_000, slowestEvery]),
    misfire: chance.pick(["once", "skip", "all"]),
    overlap: chance.pick(["allow", "allow", "skip", "queue-one", "replace"]),
  };
}

function planScheduleChange(chance: Chance, from: number, { untilMs }: WorkloadShape): ScheduleChange {
  const at = chance.real(from, untilMs);
  const kind = chance.weighted({ pause: 3, edit: 3, remove: 1 });
  if (kind === "pause") return { at, kind, forMs: chance.real(100, 8_000) };
  return kind === "edit" ? { at, kind, spec: planSpec(chance) } : { at, kind };
}

function planJob(
  index: number,
  chance: Chance,
  earlier: readonly PlannedJob[],
  shape: WorkloadShape,
): PlannedJob {
  const kind = chance.weighted({
    plain: 5,
    once: 5,
    effect: 4,
    keyed: 3,
    rated: 2,
    unique: 2,
    debounced: 1,
    timed: 2,
  } satisfies Record<Kind, number>);
  const parents = chance.happens(0.08) && earlier.length > 0 ? [chance.pick(earlier).id] : [];
  return {
    at: chance.real(0, shape.untilMs) * (chance.happens(0.3) ? 0.05 : 1),
    id: `${kind}-${index}`,
    kind,
    script: planScript(chance, shape),
    delayMs: chance.happens(0.3) ? chance.integer(1, 15_000) : 0,
    priority: chance.happens(0.3) ? chance.integer(-2, 2) : 0,
    expireInMs: chance.happens(0.05) ? chance.integer(1_000, 10_000) : null,
    after: parents,
    awaited: chance.happens(0.15),
  };
}

function planScript(chance: Chance, shape: WorkloadShape): Script {
  const story = chance.weighted({ works: 12, recovers: 4, snoozes: 2, fails: 1, "gives-up": 1, kills: 0.7 });
  const act = (ends: Act["ends"]): Act => ({ workMs: planWork(chance, shape), ends });
  const some = (ends: Act["ends"]): Act[] => Array.from({ length: chance.integer(1, 2) }, () => act(ends));
  const acts = {
    works: () => [act("return")],
    recovers: () => [...some("throw"), act("return")],
    snoozes: () => [...some("snooze"), act("return")],
    fails: () => [act("throw")],
    "gives-up": () => [act("give-up")],
    kills: () => (chance.happens(0.5) ? [act("kill")] : [act("kill"), act("return")]),
  }[story]();
  return {
    acts,
    deaf: chance.happens(0.2),
    stubborn: chance.happens(0.4),
    talks: chance.happens(0.2),
    afterEffect: chance.pick(["return", "return", "throw", "repeat"]),
    spawns: chance.happens(0.2),
    effectMs: chance.happens(0.3) ? chance.real(0, 0.5) * shape.leaseMs : 3,
    key: `k${chance.integer(0, 2)}`,
  };
}

function planWork(chance: Chance, { leaseMs }: WorkloadShape): number[] {
  const span = chance.weighted({ none: 2, short: 6, long: 2, slow: 1 });
  const scale = { none: 0, short: 300, long: leaseMs * 0.4, slow: leaseMs * 2.5 }[span];
  return Array.from({ length: chance.integer(0, 3) }, () => chance.real(0, scale));
}

function planChange(chance: Chance, jobs: readonly PlannedJob[], { untilMs }: WorkloadShape): PlannedChange {
  const job = chance.pick(jobs);
  const at = chance.real(0, untilMs * 1.2);
  const kind = chance.weighted({
    cancel: 3,
    redrive: 4,
    again: 3,
    edit: 3,
    "pause-queue": 0.5,
    "limit-queue": 1,
  });
  switch (kind) {
    case "cancel":
    case "redrive":
      return { at, kind, id: job.id };
    case "again":
      return { at, kind, job };
    case "edit":
      return { at, kind, job, delayMs: chance.happens(0.5) ? chance.integer(0, 5_000) : null };
    case "pause-queue":
      return { at, kind, forMs: chance.real(500, 8_000) };
    case "limit-queue":
      return { at, kind, limit: chance.pick([1, 2, 3, null]) };
  }
}
