import { follow } from "../../../state.ts";
import { fixed, join, now, type Sql, sql } from "../connection/sql.ts";
import type { Session } from "../session.ts";
import { endedUrgency } from "./kept.ts";

/** A plain job that succeeded, and what its handler returned. */
export interface Success {
  readonly seq: number;
  readonly result: string | null;
}

/** How many results one statement writes: the server compares each row with all of them. */
const atOnce = 100;

/** Almost every job ends with success, so the successes of one call are written together. */
export function writeSucceeded(session: Session, successes: readonly Success[], condition: Sql): void {
  for (let start = 0; start < successes.length; start += atOnce) {
    const own = successes.slice(start, start + atOnce);
    session.link.write(
      sql`update escapement_jobs set state = ${follow("active", "succeed")}, line = ${session.lines.common("succeeded")},
          urgency = ${endedUrgency("succeeded")}, at = ${now}, reason = null, result = ${resultsOf(own)}, settled = token, settled_by = claimer
        where seq in (${own.map(({ seq }) => seq)}) and ${condition}`,
    );
  }
}

function resultsOf(successes: readonly Success[]): Sql {
  const given = successes.flatMap(({ seq, result }) =>
    result === null ? [] : [sql`when ${seq} then ${result}`],
  );
  return given.length === 0 ? fixed("null") : sql`case seq ${join(given, " ")} end`;
}
