import type { Client } from "../client/client.ts";
import { readErrorHead } from "../errors.ts";
import type { JobState } from "../job.ts";
import { checkInteger } from "../options.ts";
import type { JobSketch, ScanFilter } from "../store.ts";
import { defaultLookAt, scanPage } from "./find-jobs.ts";
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
}

export interface Failures {
  /** The largest first. */
  readonly groups: readonly FailureGroup[];
  /** How many failures there are among those that were looked at. */
  readonly count: number;
  readonly looked: number;
  /** Whether older jobs were left out: then counts and first times are of the newest only. */
  readonly isPartial: boolean;
}

const pageSize = 1_000;

/** Groups what is dead and lost by what went wrong, newest first, within a bounded scan. */
export async function findFailures(
  client: Client,
  filter: ScanFilter,
  lookAtMost = defaultLookAt,
): Promise<Failures> {
  const most = checkInteger(lookAtMost, 1, 10_000_000, "lookAt");
  const asked = filter.states ?? ["dead", "lost"];
  const states = asked.filter((state): state is FailureGroup["state"] => isFailure(state));
  const groups = new Map<string, FailureGroup>();
  let looked = 0;
  let count = 0;
  let cursor: string | null = null;
  const ahead = new LookAhead(pageSize);
  do {
    const lookAt = ahead.within(most - looked);
    const page = await scanPage(
      client,
      { ...filter, states },
      { order: "newest", limit: pageSize, lookAt, cursor },
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
  return { groups: sorted, count, looked, isPartial: cursor !== null };
}

function isFailure(state: JobState): boolean {
  return state === "dead" || state === "lost";
}

function addTo(groups: Map<string, FailureGroup>, job: JobSketch): void {
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
    groups.set(key, { fingerprint, shape, name, state, count: 1, ...times, sampleId: job.id, sample });
    return;
  }
  const isLatest = endedAt > known.lastAt;
  groups.set(key, {
    ...known,
    count: known.count + 1,
    firstAt: endedAt < known.firstAt ? endedAt : known.firstAt,
    ...(isLatest ? { lastAt: endedAt, sampleId: job.id, sample } : {}),
  });
}
