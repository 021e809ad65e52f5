import assert from "node:assert/strict";
import pg from "pg";
import { functionsFor } from "../schema/functions.ts";

/** Each finds rows of the schema that contradict each other, and finds none if every writer kept them consistent. */
const contradictions: Readonly<Record<string, string>> = {
  "a job stands in no place, or in two": `
    select id from jobs j where (
      select count(*) from (
        select from turns where seq = j.seq union all select from active where seq = j.seq union all select from ended where seq = j.seq
        union all select where j.blocked union all select where j.shelf is not null) place) <> 1`,
  "a plain job waits without its own turn": `
    select id from all_jobs j where state = 'waiting' and shelf is null and not exists (
      select from turns t where t.ns = j.ns and t.queue = j.queue and t.name = j.name and t.rank = -j.priority and t.run_at = j.run_at
        and t.seq = j.seq and t.expire_at is not distinct from case when j.attempt = 0 then j.expire_at end
        and t.direct = (j.delivery = 'at-most-once' or j.crashes > 0 or j.ahead))`,
  "a place belongs to no job": `
    select t.seq::text as id from (
      select seq from turns union all select seq from active union all select seq from ended union all select seq from untried) t
    where not exists (select from jobs j where j.seq = t.seq)`,
  "a job is active under no claim": `
    select j.id from active a join jobs j using (seq) where not a.relayed and not exists (
      select from claims c where c.ns = a.ns and c.claimer = a.claimer and c.sequence = a.claim_sequence and a.seq = any (c.seqs)
        and a.queue = any (c.queues) and c.until <= a.lease_until)`,
  "a claim counts fewer jobs than are open": `
    select claimer as id from claims c where open < (
      select count(*) from active a where a.seq = any (c.seqs) and a.claimer = c.claimer and a.claim_sequence = c.sequence)`,
  "an active row is not of its job": `
    select j.id from active a join jobs j using (seq) where (a.ns, a.queue, a.name, a.slot, a.relayed)
      <> (j.ns, j.queue, j.name, j.slot, j.relayed)
      or a.concurrency_key is distinct from j.concurrency_key or a.token <= j.token`,
  "a column for an index is not what it should be": `
    select id from all_jobs where
      lane is distinct from lane_of(concurrency_key, rate_key)
      or shelf is distinct from case state when 'waiting' then shelf_of(relayed, lane, crashes, max_crashes) end`,
  "a success is found by nobody who prunes": `
    select j.id from ended e join jobs j using (seq) where e.state = 'succeeded' and e.forget_at is null and not exists (
      select from (select ns, finished_at, seqs from successes union all select ns, finished_at, seqs from fresh_successes) s
      where s.ns = e.ns and s.finished_at = e.finished_at and e.seq = any (s.seqs))`,
  "a count is not that of a recount": `
    select format('%s %s %s', queue, name, kind) as id from (
      select ns, queue, name, kind, jobs from counts union all select ns, queue, name, kind, jobs from count_changes
      union all select ns, queue, name, 'succeeded', jobs from fresh_successes
      union all select ns, queue, name, 'all', -1 from jobs
      union all select j.ns, j.queue, j.name, e.state, -1 from ended e join jobs j using (seq)) every
    group by ns, queue, name, kind having sum(jobs) <> 0`,
  "untried is not what it should be": `
    select id from (
      select id, seq, case when state in ('waiting', 'blocked') and attempt = 0 then expire_at end as expire_at,
        case when state = 'waiting' and token = 0 then debounce_key end as debounce_key from all_jobs) j left join untried u using (seq)
    where u.expire_at is distinct from j.expire_at or u.debounce_key is distinct from j.debounce_key
      or u.seq is not null and j.expire_at is null and j.debounce_key is null`,
};

/** What stands beside the jobs so that claims are cheap agrees with the jobs. */
export async function assertBooks(url: string, schema: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(`set search_path = ${functionsFor(schema).schema}, ${schema}`);
    for (const [what, sql] of Object.entries(contradictions)) {
      const { rows } = await client.query<{ id: string }>(sql);
      assert.deepEqual(
        rows.map(({ id }) => id),
        [],
        what,
      );
    }
  } finally {
    await client.end();
  }
}
