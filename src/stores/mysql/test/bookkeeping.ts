import assert from "node:assert/strict";
import { createConnection, type RowDataPacket } from "mysql2/promise";

/** Each names rows that contradict each other, and finds none if whoever wrote a job kept the books. */
const contradictions: Readonly<Record<string, string>> = {
  "a count is not that of a recount": `
    select concat_ws(' ', ns, queue, name, kind) as id from (
      select ns, queue, name, kind, jobs from escapement_counts
      union all select ns, queue, name, kind, jobs from escapement_count_changes
      union all select ns, queue, name, 'all', -1 from escapement_jobs where state <> 'alias'
      union all select ns, queue, name, state, -1 from escapement_jobs where state in ('succeeded', 'dead', 'lost', 'cancelled')) as every
    group by ns, queue, name, kind having sum(jobs) <> 0`,
  "a job has ended above what is known as the last of its state": `
    select id from escapement_jobs as j where state in ('succeeded', 'dead', 'lost', 'cancelled') and seq > coalesce((
      select max(last_seq) from (
        select ns, kind, last_seq from escapement_counts union all select ns, kind, last_seq from escapement_count_changes) as ended
      where ended.ns = j.ns and ended.kind = j.state), 0)`,
  "a job stands in a line of another state": `
    select j.id from escapement_jobs as j left join escapement_lines as l on l.line = j.line and l.ns = j.ns
    where not coalesce(l.kind = j.state or j.state = 'waiting' and l.kind in ('plain', 'fragile', 'lane', 'relay')
      or j.state = 'active' and l.kind = 'named', false)`,
};

/** What stands beside the jobs agrees with them. */
export async function assertBooks(url: string, tablePrefix: string): Promise<void> {
  const connection = await createConnection(url);
  try {
    for (const [what, sql] of Object.entries(contradictions)) {
      const [rows] = await connection.query<RowDataPacket[]>(sql.replaceAll("escapement_", tablePrefix));
      assert.deepEqual(
        rows.map(({ ["id"]: id }) => String(id)),
        [],
        what,
      );
    }
  } finally {
    await connection.end();
  }
}
