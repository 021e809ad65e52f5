import type { Depths } from "../../store/questions.ts";
import {
  type DepthPart,
  depthsOf,
  lookedPerGroup,
  type PlainGroup,
  plainParts,
  plainWaiting,
} from "../queue-depth.ts";
import type { Tuple } from "./connection/link.ts";
import { fixed, now, type Sql, sql } from "./connection/sql.ts";
import { readCounts } from "./jobs/counts.ts";
import { readRuns, type TimedLineRun } from "./limits/shelves.ts";
import { numberOf, numberOrNull, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

export async function depths(session: Session): Promise<Depths> {
  await session.lines.refresh(session.link);
  const [counts, shelved, runs] = await Promise.all([
    readCounts(session),
    readShelved(session),
    readRuns(session.link, session.lines.plain),
  ]);
  const most = lookedPerGroup(runs.length);
  const groups = await lookAt(session, runs, most);
  const held = counts.flatMap(({ queue, state, count }): DepthPart[] =>
    state === "active" || state === "blocked" ? [{ queue, state, jobs: count, due: 0, firstAt: null }] : [],
  );
  const plain = plainParts(groups, most, plainWaiting(counts, shelved));
  return {
    now: new Date(session.now),
    queues: depthsOf([...plain, ...shelved, ...held], session.now),
  };
}

/** Jobs that wait outside the lines of plain ones: fragile ones by their lines, keyed ones by their lanes; only relayed ones are read themselves. */
async function readShelved({ link, ns }: Session): Promise<DepthPart[]> {
  const figures = (at: string): Sql =>
    sql`count(*), coalesce(sum(${fixed(at)} <= ${now}), 0), min(${fixed(at)})`;
  const byLine = (queue: string, kind: string): Sql =>
    sql`select ${fixed(queue)} as of_queue, ${figures("j.at")} from escapement_lines as l
      straight_join escapement_jobs as j force index (escapement_jobs_line) on j.line = l.line
      where l.ns = ${ns} and l.kind = ${kind} group by of_queue`;
  const answers = await Promise.all([
    link.query(byLine("l.queue", "fragile")),
    link.query(
      sql`select queue, ${figures("run_at")} from escapement_lane_jobs force index (escapement_lane_jobs_lane)
        where ns = ${ns} and place = 'waiting' group by queue`,
    ),
    link.query(byLine("j.queue", "relay")),
  ]);
  return answers.flatMap(({ rows }) => rows.map(toPart));
}

function toPart(row: Tuple): DepthPart {
  return {
    queue: textOf(row[0]),
    state: "waiting",
    jobs: numberOf(row[1]),
    due: numberOf(row[2]),
    firstAt: numberOrNull(row[3]),
  };
}

/** Each run is one range of the index, read on both sides of now. */
function lookAt(
  { link, lines, now: at }: Session,
  runs: readonly TimedLineRun[],
  most: number,
): Promise<PlainGroup[]> {
  const queues = new Map(lines.plain.map(({ line, queue }) => [line, queue]));
  const seen = async ({ line, urgency }: TimedLineRun, side: Sql): Promise<number> => {
    const { rows } = await link.query(
      sql`select count(*) from (select 1 from escapement_jobs force index (escapement_jobs_line)
        where line = ${line} and urgency = ${urgency} and at ${side} ${now} limit ${most}) as seen`,
    );
    return numberOf(rows[0]?.[0]);
  };
  return Promise.all(
    runs.map(async (run) => {
      const [due, later] = await Promise.all([seen(run, fixed("<=")), seen(run, fixed(">"))]);
      const firstAt = run.firstAt <= at ? run.firstAt : null;
      return { queue: queues.get(run.line) ?? "", due, later, firstAt };
    }),
  );
}
