import type { CountRow, Depths } from "../../store/questions.ts";
import {
  type DepthPart,
  depthsOf,
  lookedPerGroup,
  type PlainGroup,
  plainParts,
  plainWaiting,
} from "../queue-depth.ts";
import { readCounts } from "./jobs/counts.ts";
import { numberOf, numberOrNull, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

/** Jobs that wait outside the shelf of plain ones: most have their queue next to what is counted; only relayed ones are read themselves. */
const shelves = [
  "escapement_jobs indexed by escapement_jobs_gate where ns = ? and shelf = 'lane'",
  "escapement_jobs indexed by escapement_jobs_fragile where ns = ? and shelf = 'fragile'",
  "escapement_jobs indexed by escapement_jobs_relay where ns = ? and shelf = 'relay'",
] as const;

export function depths(session: Session): Depths {
  const { connection, ns, now } = session;
  const counts = readCounts(session);
  const shelved = shelves.flatMap((from) =>
    connection
      .all(
        `select queue, count(*) as jobs, sum(run_at <= ?) as due, min(run_at) as first from ${from} group by queue`,
        now,
        ns,
      )
      .map(
        (row): DepthPart => ({
          queue: textOf(row["queue"]),
          state: "waiting",
          jobs: numberOf(row["jobs"]),
          due: numberOf(row["due"]),
          firstAt: numberOrNull(row["first"]),
        }),
      ),
  );
  const groups = groupsOf(session, counts);
  const most = lookedPerGroup(groups.length);
  const plain = groups.map((group) => lookAt(session, group, most));
  const held = counts.flatMap(({ queue, state, count }): DepthPart[] =>
    state === "active" || state === "blocked" ? [{ queue, state, jobs: count, due: 0, firstAt: null }] : [],
  );
  const parts = [...plainParts(plain, most, plainWaiting(counts, shelved)), ...shelved, ...held];
  return { now: new Date(now), queues: depthsOf(parts, now) };
}

/** Plain jobs that are adjacent in the order of their time. */
interface Group {
  readonly queue: string;
  readonly name: string;
  readonly priority: number;
}

const below = `select priority from escapement_plain where ns = ? and queue = ? and name = ? and priority < ?
  order by priority desc limit 1`;

function groupsOf({ connection, ns }: Session, counts: readonly Required<CountRow>[]): Group[] {
  const groups: Group[] = [];
  for (const { queue, name, state } of counts) {
    if (state !== "waiting") continue;
    for (let bound = Number.MAX_SAFE_INTEGER; ; ) {
      const row = connection.get(below, ns, queue, name, bound);
      if (row === undefined) break;
      bound = numberOf(row["priority"]);
      groups.push({ queue, name, priority: bound });
    }
  }
  return groups;
}

const ofGroup =
  "select run_at from escapement_plain where ns = ? and queue = ? and name = ? and priority = ?";
const counted = (side: string): string =>
  `select count(*) as jobs, min(run_at) as first from (${ofGroup} and run_at ${side} ? limit +?)`;
const countDue = counted("<=");
const countLater = counted(">");

function lookAt({ connection, ns, now }: Session, group: Group, most: number): PlainGroup {
  const { queue, name, priority } = group;
  const due = connection.get(countDue, ns, queue, name, priority, now, most);
  const later = connection.get(countLater, ns, queue, name, priority, now, most);
  return {
    queue,
    due: numberOf(due?.["jobs"]),
    later: numberOf(later?.["jobs"]),
    firstAt: numberOrNull(due?.["first"]),
  };
}
