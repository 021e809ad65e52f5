import type { Schedule } from "../app/schedule.ts";
import type { AppHealth } from "../client/client.ts";
import type { AnyDefinition } from "../definition.ts";
import { sentenceOf } from "../diagnosis/sentence.ts";
import { whyUnserved } from "../diagnosis/who-serves.ts";
import { formatDuration } from "../duration.ts";
import type { Job } from "../job.ts";
import { canary } from "../relay/canary.ts";
import { commandFor, shellWord } from "../runtime/shell-word.ts";
import type { Settings } from "../settings.ts";
import type { SeenNode } from "../store/nodes.ts";
import type { CountRow } from "../store/questions.ts";
import type { QueueConfig } from "../store/queues.ts";
import { durabilityAdvice } from "./durability-advice.ts";
import { sizeOf } from "./sizes.ts";

/** One thing that was checked; `problem` breaks something, `warning` weakens or delays something. */
export interface Finding {
  readonly level: "ok" | "warning" | "problem";
  readonly what: string;
  /** What to do about it. */
  readonly advice: string | null;
}

export interface Facts {
  readonly health: AppHealth;
  /** How far the store's clock is ahead of this machine's, within bounds. */
  readonly clockOffsetMs: { readonly least: number; readonly most: number };
  readonly definitions: readonly AnyDefinition[];
  readonly settings: Pick<Settings, "leaseMs" | "acceptWeakDurability">;
  /** By queue, name and state. */
  readonly counts: readonly CountRow[];
  /** The oldest that wait and go soon, some of them. */
  readonly oldest: readonly Pick<
    Job,
    "id" | "name" | "relayed" | "rollbacks" | "error" | "claimedAt" | "unreadable"
  >[];
  readonly schedules: readonly Pick<Schedule, "key" | "unreadable" | "paused" | "nextAt">[];
  readonly nodes: readonly SeenNode[];
  readonly queues: readonly QueueConfig[];
}

const tolerableOffsetMs = 1_000;
const shortLeaseMs = 5_000;
const longestError = 200;
/** A planner fires within seconds, unless the store is away. */
const overdueMs = 5 * 60_000;

/** Says for each thing whether it is healthy, and if not, what to do. Pure, so every finding is tested. */
export function findingsOf(facts: Facts): Finding[] {
  return [
    store,
    durability,
    clock,
    problems,
    lease,
    alive,
    unserved,
    refused,
    unreadable,
    paused,
    pausedSchedules,
    overdue,
    ended,
  ].flatMap((look) => look(facts));
}

const ok = (what: string): Finding => ({ level: "ok", what, advice: null });
const warning = (what: string, advice: string): Finding => ({ level: "warning", what, advice });

function store({ health }: Facts): Finding[] {
  const details = Object.entries(health.details).map(([setting, value]) => ok(detail(setting, value)));
  return [ok(`${health.engine}, schema version ${health.schemaVersion}`), ...details];
}

/** What stores say in bytes, and what to call it; servers take 0 for "no limit". */
const sizes: Readonly<Record<string, string>> = {
  "size in bytes": "size",
  maxmemory: "maxmemory",
  max_allowed_packet: "max_allowed_packet",
};

function detail(setting: string, value: string): string {
  const name = sizes[setting];
  return name === undefined || !/^[1-9]\d*$/.test(value)
    ? `${setting}: ${value}`
    : `${name}: ${sizeOf(Number(value))}`;
}

function durability({ health, definitions, settings }: Facts): Finding[] {
  const { durability: level } = health.capabilities;
  if (level === "full") return [ok("durability: an acknowledged write survives a power failure")];
  const what =
    level === "none"
      ? "durability: everything ends with the process"
      : "durability: acknowledged writes may be forgotten after a power failure";
  const strict = definitions.filter(({ delivery }) => delivery === "at-most-once").map(({ name }) => name);
  const advice = durabilityAdvice(health);
  if (level === "weak" && strict.length > 0 && settings.acceptWeakDurability) {
    return [
      warning(
        `${what}; acceptWeakDurability lets ${strict.join(", ")} run anyway; at most once is then not kept`,
        advice,
      ),
    ];
  }
  return [warning(what, advice)];
}

function clock({ clockOffsetMs: { least, most } }: Facts): Finding[] {
  if (least <= tolerableOffsetMs && most >= -tolerableOffsetMs)
    return [ok("clock: this machine agrees with the store")];
  const offset =
    least > 0 ? `at least ${formatDuration(least)} ahead of` : `at least ${formatDuration(-most)} behind`;
  return [
    warning(
      `clock: the store's clock is ${offset} this machine's`,
      "this cannot make jobs fire early or twice, since the store's clock decides; but times in logs will not match: run NTP on both",
    ),
  ];
}

function problems({ health }: Facts): Finding[] {
  return health.problems.map((what) => {
    const [fault = what, ...advice] = what.split(": ");
    return { level: "problem", what: fault, advice: advice.join(": ") || null };
  });
}

function lease({ settings: { leaseMs } }: Facts): Finding[] {
  if (leaseMs >= shortLeaseMs) return [ok(`lease: ${formatDuration(leaseMs)}`)];
  return [
    warning(
      `lease: ${formatDuration(leaseMs)} is short`,
      "an outage longer than that makes at-least-once jobs run again and at-most-once jobs lost; 30 s is the default",
    ),
  ];
}

function alive({ nodes }: Facts): Finding[] {
  const living = nodes.filter((node) => node.alive);
  if (living.length === 0)
    return [
      warning("no node is alive", "start one with app.start() in your application, or: escapement start"),
    ];
  return [ok(`${living.length} node${living.length === 1 ? " is" : "s are"} alive`)];
}

/** Jobs that no node serves, in the words of `explain`. */
function unserved(facts: Facts): Finding[] {
  const routed = namesWithRoute(facts);
  return facts.counts.flatMap(({ queue, name, state, count }) => {
    // The canary is the relays' own: no node reports it, and where no relay is left it expires.
    if (state !== "waiting" || count === 0 || name === canary.name) return [];
    if (queue === undefined || name === undefined) return [];
    const cause = whyUnserved({ name, queue, relayed: routed.has(name) }, facts.nodes);
    if (cause === null) return [];
    const { what } = sentenceOf(cause, { id: "" });
    const jobs = `${count} waiting job${count === 1 ? "" : "s"} of ${JSON.stringify(name)} in queue ${JSON.stringify(queue)}`;
    const start = servers[cause.code] ?? "start a node for them";
    // While nothing runs, all jobs are without a node, and at night a command that is shown is a command that is pasted.
    if (!facts.nodes.some((node) => node.alive)) return [warning(`${jobs}: ${what}`, start)];
    const cancel = `escapement jobs cancel --state waiting ${option("name", name)} ${option("queue", queue)}`;
    return [warning(`${jobs}: ${what}`, `${start}; if they are not wanted: ${cancel}`)];
  });
}

/** A value that begins with a dash is not taken for another option. */
function option(name: string, value: string): string {
  return value.startsWith("-") ? `--${name}=${shellWord(value)}` : `--${name} ${shellWord(value)}`;
}

/** What to do about many jobs of one kind. */
const servers: Readonly<Record<string, string>> = {
  "no-handler": "start a node whose jobs include it",
  "no-relay": "they have a route: start a node whose jobs include it, with the role relay among its roles",
  "queue-not-served": "start a node with that queue among its queues, or one that serves all queues",
};

/** From the definitions, and from jobs: the caller need not know all definitions. */
function namesWithRoute({ definitions, oldest }: Facts): ReadonlySet<string> {
  return new Set([
    ...definitions.flatMap(({ name, route }) => (route === null ? [] : name)),
    ...oldest.flatMap(({ name, relayed }) => (relayed ? name : [])),
  ]);
}

/** Jobs that were given to a broker, came back, and wait for another attempt. */
function refused({ oldest }: Facts): Finding[] {
  const backs = oldest.filter(({ relayed, rollbacks }) => relayed && rollbacks > 0);
  return Object.values(Object.groupBy(backs, ({ name }) => name)).flatMap((jobs = []) => {
    const [latest] = jobs.toSorted((a, b) => (b.claimedAt?.getTime() ?? 0) - (a.claimedAt?.getTime() ?? 0));
    if (latest === undefined) return [];
    const { id, name, error } = latest;
    const among = `${jobs.length} of the ${oldest.length} oldest waiting job${oldest.length === 1 ? "" : "s"} looked at`;
    const why = error === null ? "" : `, the latest with ${error.name}: ${firstLine(error.message)}`;
    return [
      warning(
        `${JSON.stringify(name)}: ${among} could not be published and wait${jobs.length === 1 ? "s" : ""} for another attempt${why}`,
        commandFor("explain", id),
      ),
    ];
  });
}

/** What something else has written to, or a newer version. */
function unreadable({ oldest, schedules }: Facts): Finding[] {
  const some = schedules.flatMap(({ key, unreadable: why }) =>
    why === undefined
      ? []
      : warning(
          `schedule ${JSON.stringify(key)} does not fire: ${why}`,
          `define it again, or remove it: ${commandFor("schedules rm", key)}`,
        ),
  );
  const jobs = oldest.filter((job) => job.unreadable !== undefined);
  const [first] = jobs;
  if (first === undefined) return some;
  const among = `${jobs.length} of the ${oldest.length} oldest waiting job${oldest.length === 1 ? "" : "s"} looked at`;
  return [
    ...some,
    warning(
      `${among} cannot be read completely: something else has written to the store`,
      commandFor("explain", first.id),
    ),
  ];
}

function firstLine(text: string): string {
  const [line = ""] = text.split("\n");
  return line.length > longestError ? `${line.slice(0, longestError)}…` : line;
}

function paused({ queues, counts }: Facts): Finding[] {
  const used = new Set(counts.flatMap(({ queue }) => queue ?? []));
  return queues
    .filter((queue) => queue.paused)
    .map(({ queue }) => {
      const { what, advice } = sentenceOf({ code: "queue-paused", queue }, { id: "" });
      if (used.has(queue)) return warning(what, advice ?? "");
      // A queue comes into being with its first job, so a misspelt one is paused without complaint.
      const others =
        used.size === 0 ? "no queue has one" : `queues with jobs: ${[...used].sort().join(", ")}`;
      return warning(`${what}, and no job is in it`, `check its name (${others}), or ${advice}`);
    });
}

function pausedSchedules({ schedules }: Facts): Finding[] {
  return schedules
    .filter(({ paused }) => paused)
    .map(({ key }) =>
      warning(
        `schedule ${JSON.stringify(key)} is paused`,
        `resume it: ${commandFor("schedules resume", key)}`,
      ),
    );
}

/** Schedules that do not fire although a planner is alive: the store refuses them, or it catches up. */
function overdue({ schedules, nodes, health }: Facts): Finding[] {
  const [planner] = nodes.filter(({ alive, roles }) => alive && roles.includes("planner"));
  if (planner === undefined) return [];
  return schedules.flatMap(({ key, nextAt, paused, unreadable: why }) => {
    if (nextAt === null || paused || why !== undefined) return [];
    const lateMs = health.now.getTime() - nextAt.getTime();
    if (lateMs < overdueMs) return [];
    return [
      warning(
        `schedule ${JSON.stringify(key)} is behind: it has been due for ${formatDuration(lateMs)} although a planner is alive`,
        `if it does not catch up, look for ${JSON.stringify(`planning schedule "${key}"`)} in the log of ${planner.id}, then define it again`,
      ),
    ];
  });
}

const endedAdvice = {
  dead: "look at what went wrong, then redrive them by group: escapement dead",
  lost: "they may have run: find out which did, and redrive only those that did not: escapement lost",
} as const;

function ended({ counts }: Facts): Finding[] {
  return (["dead", "lost"] as const).flatMap((state) => {
    const count = counts.filter((row) => row.state === state).reduce((sum, row) => sum + row.count, 0);
    return count === 0
      ? []
      : [warning(`${count} job${count === 1 ? " is" : "s are"} ${state}`, endedAdvice[state])];
  });
}
