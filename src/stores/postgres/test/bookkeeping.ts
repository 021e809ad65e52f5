import assert from "node:assert/strict";
import pg from "pg";

/** Each names rows of the schema that contradict each other, and finds none where whoever wrote a job kept the books. */
const contradictions: Readonly<Record<string, string>> = {
  "a plain job waits without a turn": `
    select id from jobs j where state = 'waiting' and shelf is null and not exists (
      select from turns t where t.ns = j.ns and t.queue = j.queue and t.name = j.name and t.rank = -j.priority and t.run_at = j.run_at
        and t.seq = j.seq and t.expire_at is not distinct from j.expires_at
        and t.direct = (j.delivery = 'at-most-once' or j.crashes > 0 or j.ahead))`,
  "a turn belongs to no plain job that waits": `
    select t.seq::text as id from turns t left join jobs j on j.seq = t.seq
    where j.seq is null or j.state <> 'waiting' or j.shelf is not null or j.run_at <> t.run_at`,
  "a job is active under no claim": `
    select id from jobs j where state = 'active' and not relayed and not exists (
      select from claims c where c.ns = j.ns and c.claimer = j.claimer and c.sequence = j.claim_sequence and j.seq = any (c.seqs)
        and j.queue = any (c.queues) and c.until <= j.lease_until)`,
  "a claim counts fewer jobs than are open": `
    select claimer as id from claims c where open < (
      select count(*) from jobs j where j.seq = any (c.seqs) and j.state = 'active' and j.claimer = c.claimer and j.claim_sequence = c.sequence)`,
  "a column for an index is not what it should be": `
    select id from jobs where
      lane is distinct from lane_of(concurrency_key, rate_key)
      or shelf is distinct from case state when 'waiting' then shelf_of(relayed, lane, crashes, max_crashes)
        when 'active' then case when relayed then 'named' end end
      or held_key is distinct from case when state = 'active' and not relayed then concurrency_key end
      or expires_at is distinct from case when attempt = 0 and state in ('waiting', 'blocked') then expire_at end
      or open_debounce is distinct from case when state = 'waiting' and token = 0 then debounce_key end`,
};

/** What stands beside the jobs so that claims are cheap agrees with the jobs. */
export async function assertBooks(url: string, schema: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(`set search_path = ${schema}`);
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
