-- Every job in its current state.
create view all_jobs as
select
  j.seq, j.ns, j.id, j.name, j.queue, j.delivery, j.priority, j.run_at, j.fire_at, j.enqueued_at,
  coalesce(e.state, case when a.seq is not null then 'active' when j.blocked then 'blocked' else 'waiting' end) as state,
  j.attempts, j.max_crashes, j.slot, j.shelf, j.expire_at, j.crashes, j.redrives, j.rollbacks, j.version,
  coalesce(e.attempt, a.attempt, j.attempt) as attempt,
  coalesce(e.token, a.token, j.token) as token,
  coalesce(e.settled, j.settled) as settled,
  case when e.settled > j.settled then e.claimer when j.settled > 0 then coalesce(j.settled_by, j.claimer) end as settled_by,
  coalesce(e.claimer, a.claimer, j.claimer) as claimer,
  coalesce(e.claimed_at, a.claimed_at, j.claimed_at) as claimed_at,
  a.claim_sequence, a.lease_until, j.cancel_requested, coalesce(a.ahead, j.ahead) as ahead, j.relayed, e.finished_at,
  j.lane, j.concurrency_key, j.rate_key, j.unique_key, j.unique_ms, j.debounce_key, j.after_failure, j.schedule, j.retention, j.tags,
  case when e.seq is not null then e.reason when a.seq is not null then a.reason else j.reason end as reason,
  j.error, j.progress, e.result, j.input
from jobs j left join active a on a.seq = j.seq left join ended e on e.seq = j.seq;
