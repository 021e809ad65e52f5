import type { Client } from "../client/client.ts";
import { readErrorHead } from "../errors.ts";
import type { JobState } from "../job.ts";
import { checkInteger } from "../options.ts";
import type { JobSketch, ScanFilter } from "../store/questions.ts";
import { scanPage } from "./find-jobs.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { LookAhead } from "./look-ahead.ts";

/** Failures of jobs of one name that look alike. */
export interface FailureGroup {
  /** The id of their fingerprint. */
  readonly fingerprint: string;
  /** What they have in common. */
  readonly shape: string;
  /** The name of the jobs. */
  readonly name: string;
  readonly state: "dead" | "lost";
  readonly count: number;
  /** When the first and the last of those that were looked at ended. */
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** The latest of them, and what it says. */
  readonly sampleId: string;
  readonly sample: string;
  /** How many ended when: equal parts of the time from `from` to `to`, the same for all groups, so they can be compared. */
  readonly spark: readonly number[];
}

export interface Failures {
  /** The largest first. */
  readonly groups: readonly FailureGroup[];
  /** How many failures there are among those that were looked at. */
  readonly count: number;
  readonly looked: number;
  /** Whether earlier ends were left out: then counts and first times are of the latest only. */
  readonly isPartial: boolean;
  /** The first and the last end of those that were looked at; null without any. */
  readonly from: Date | null;
  readonly to: Date | null;
}

/** A group while it is being collected: its ends instead of their spark. */
type Collected = Omit<FailureGroup, "spark"> & { readonly ends: number[] };

const pageSize = 1_000;
const sparkParts = 24;

/** How many failures are grouped unless more are asked for: a screen is drawn again and again. */
export const defaultFailures = 2_000;

/** Groups what is dead and lost by what went wrong, of those that ended last, within a bounded scan. */
export async function findFailures(
  client: Client,
  filter: ScanFilter,
  lookAtMost = defaultFailures,
): Promise<Failures> {
  const most = checkInteger(lookAtMost, 1, 10_000_000, "lookAt");
  const asked = filter.states ?? ["dead", "lost"];
  const states = asked.filter((state): state is FailureGroup["state"] => isFailure(state));
  const groups = new Map<string, Collected>();
  let looked = 0;
  let count = 0;
  let cursor: string | null = null;
  const ahead = new LookAhead(pageSize);
  do {
    const lookAt = ahead.within(most - looked);
    const page = await scanPage(
      client,
      { ...filter, states },
      { by: "ended", order: "newest", limit: pageSize, lookAt, cursor },
    );
    ahead.learn(Math.min(pageSize, lookAt), page.jobs.length);
    for (const job of page.jobs) addTo(groups, job);
    count += page.jobs.length;
    looked += page.looked;
    cursor = page.cursor;
  } while (cursor !== null && looked < most);
  const sorted = [...groups.values()].sort(
    (a, b) => b.count - a.count || b.lastAt.getTime() - a.lastAt.getTime(),
  );
  const { from, to } = spanOf(sorted);
  const drawn = sorted.map(({ ends, ...group }) => ({ ...group, spark: sparkOf(ends, from, to) }));
  const [first, last] = sorted.length === 0 ? [null, null] : [new Date(from), new Date(to)];
  return { groups: drawn, count, looked, isPartial: cursor !== null, from: first, to: last };
}

function spanOf(groups: readonly Collected[]): { readonly from: number; readonly to: number } {
  const from = groups.reduce((least, { firstAt }) => Math.min(least, firstAt.getTime()), Infinity);
  const to = groups.reduce((most, { lastAt }) => Math.max(most, lastAt.getTime()), -Infinity);
  return { from, to };
}

function sparkOf(ends: readonly number[], from: number, to: number): number[] {
  const spark = Array.from({ length: sparkParts }, () => 0);
  for (const end of ends) {
    const part = Math.min(sparkParts - 1, Math.floor(((end - from) / (to - from + 1)) * sparkParts));
    spark[part] = (spark[part] ?? 0) + 1;
  }
  return spark;
}

function isFailure(state: JobState): boolean {
  return state === "dead" || state === "lost";
}

function addTo(groups: Map<string, Collected>, job: JobSketch): void {
  const { id: fingerprint, shape } = fingerprintOf(job);
  const { name } = job;
  const state = job.state === "lost" ? "lost" : "dead";
  const key = JSON.stringify([name, state, fingerprint]);
  const endedAt = job.finishedAt ?? job.runAt;
  const error = readErrorHead(job.errorHead);
  const sample = error === null ? (job.reason ?? "") : `${error.name}: ${error.message}`;
  const known = groups.get(key);
  if (known === undefined) {
    const times = { firstAt: endedAt, lastAt: endedAt };
    const ends = [endedAt.getTime()];
    groups.set(key, { fingerprint, shape, name, state, count: 1, ...times, sampleId: job.id, sample, ends });
    return;
  }
  known.ends.push(endedAt.getTime());
  const isLatest = endedAt > known.lastAt;
  groups.set(key, {
    ...known,
    count: known.count + 1,
    firstAt: endedAt < known.firstAt ? endedAt : known.firstAt,
    ...(isLatest ? { lastAt: endedAt, sampleId: job.id, sample } : {}),
  });
}
