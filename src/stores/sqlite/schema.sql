-- Read from a database after its migrations, by `npm run schemas`; do not edit.

CREATE TABLE escapement_active (
  seq integer primary key,
  ns integer not null,
  queue text not null,
  name text not null,
  attempt integer not null,
  token integer not null,
  claimer text not null,
  claim_sequence integer,
  claimed_at integer not null,
  lease_boot integer,
  lease_until integer,
  ahead integer not null default 0,
  limited integer not null default 0,
  relayed integer not null,
  slot integer not null,
  concurrency_key text,
  retention text,
  reason text,
  check (
    attempt between 0 and 1000000000 and token between 0 and 1000000000 and
    claimed_at between -9007199254740991 and 9007199254740991 and lease_until between -9007199254740991 and 9007199254740991
  )
) strict;

CREATE INDEX escapement_active_key on escapement_active (ns, concurrency_key) where concurrency_key is not null and relayed = 0;

CREATE INDEX escapement_active_limited on escapement_active (ns, queue) where limited = 1;

CREATE INDEX escapement_active_named on escapement_active (ns, slot) where relayed = 1;

CREATE TABLE escapement_aliases (
  ns integer not null,
  id text not null,
  job integer not null,
  primary key (ns, id)
) strict, without rowid;

CREATE INDEX escapement_aliases_job on escapement_aliases (job);

CREATE VIEW escapement_all_jobs as
select
  job.seq, job.ns, job.id, job.name, job.queue, job.delivery, job.priority, job.run_at, job.fire_at, job.enqueued_at,
  coalesce(ended.state, case when active.seq is not null then 'active' when job.blocked = 1 then 'blocked' else 'waiting' end) as state,
  job.attempts, job.max_crashes, job.slot, job.shelf, job.expire_at, job.crashes, job.redrives, job.rollbacks, job.version,
  coalesce(ended.attempt, active.attempt, job.attempt) as attempt,
  coalesce(ended.token, active.token, job.token) as token,
  coalesce(ended.settled, job.settled) as settled,
  case when ended.settled > job.settled then ended.claimer when job.settled > 0 then coalesce(job.settled_by, job.claimer) end as settled_by,
  coalesce(ended.claimer, active.claimer, job.claimer) as claimer,
  coalesce(ended.claimed_at, active.claimed_at, job.claimed_at) as claimed_at,
  job.cancel_requested, coalesce(active.ahead, job.ahead) as ahead, job.relayed, ended.finished_at,
  job.lane, job.concurrency_key, coalesce(active.limited, 0) as limited, job.rate_key, job.unique_key, job.unique_ms, job.debounce_key, job.after_failure, job.schedule,
  job.retention, job.tags,
  case when ended.seq is not null then ended.reason when active.seq is not null then active.reason else job.reason end as reason,
  job.error, job.progress, ended.result, job.input
from escapement_jobs as job
  left join escapement_active as active on active.seq = job.seq
  left join escapement_ended as ended on ended.seq = job.seq;

CREATE TABLE escapement_audit (
  entry integer primary key autoincrement,
  ns integer not null,
  at integer not null,
  id text not null,
  actor text not null,
  action text not null,
  target text not null,
  reason text,
  outcome text
) strict;

CREATE INDEX escapement_audit_at on escapement_audit (ns, at);

CREATE UNIQUE INDEX escapement_audit_id on escapement_audit (ns, id);

CREATE TABLE escapement_boots (
  boot integer primary key,
  machine_id text not null unique
) strict;

CREATE TABLE escapement_ended (
  seq integer primary key,
  ns integer not null,
  state text not null,
  finished_at integer not null,
  attempt integer not null,
  token integer not null,
  settled integer not null,
  claimer text,
  claimed_at integer,
  forget_at integer,
  reason text,
  result text,
  check (
    attempt between 0 and 1000000000 and token between 0 and 1000000000 and
    finished_at between -9007199254740991 and 9007199254740991 and
    claimed_at between -9007199254740991 and 9007199254740991 and forget_at between -9007199254740991 and 9007199254740991
  )
) strict;

CREATE INDEX escapement_ended_finished on escapement_ended (ns, state, finished_at) where forget_at is null;

CREATE INDEX escapement_ended_forget on escapement_ended (ns, forget_at) where forget_at is not null;

CREATE INDEX escapement_ended_kept on escapement_ended (ns, state, finished_at) where forget_at is not null;

CREATE INDEX escapement_ended_notable on escapement_ended (ns, state, seq) where state <> 'succeeded';

CREATE TABLE escapement_figures (
  ns integer not null,
  kind text not null,
  key text not null,
  name text not null,
  value integer not null,
  seen_at integer,
  primary key (ns, kind, key, name),
  check (
    value between -9007199254740991 and 9007199254740991 and seen_at between -9007199254740991 and 9007199254740991
  )
) strict, without rowid;

CREATE TABLE escapement_gates (
  ns integer not null,
  lane text not null,
  queue text not null,
  name text not null,
  ready_at integer,
  concurrency_limit integer,
  primary key (ns, lane, queue, name),
  check (
    ready_at between -9007199254740991 and 9007199254740991
  )
) strict, without rowid;

CREATE INDEX escapement_gates_ready on escapement_gates (ns, queue, name, ready_at, concurrency_limit);

CREATE TABLE escapement_history (
  ns integer not null,
  series text not null,
  at integer not null,
  queue text not null,
  name text not null,
  succeeded integer not null,
  failed integer not null,
  crashed integer not null,
  dead integer not null,
  lost integer not null,
  cancelled integer not null,
  existing integer not null,
  absorbed integer not null,
  stale integer not null,
  naming_retries integer not null,
  publish_retries integer not null,
  rollback_retries integer not null,
  runs integer not null,
  run_sum_ms integer not null,
  late_sum_ms integer not null,
  late_0 integer not null,
  late_1 integer not null,
  late_2 integer not null,
  late_3 integer not null,
  late_4 integer not null,
  late_5 integer not null,
  late_6 integer not null,
  run_max_ms integer not null,
  late_max_ms integer not null,
  due_max integer not null,
  primary key (ns, series, at, queue, name),
  check (
    succeeded between 0 and 9007199254740991 and failed between 0 and 9007199254740991 and
    crashed between 0 and 9007199254740991 and dead between 0 and 9007199254740991 and
    lost between 0 and 9007199254740991 and cancelled between 0 and 9007199254740991 and
    existing between 0 and 9007199254740991 and absorbed between 0 and 9007199254740991 and
    stale between 0 and 9007199254740991 and naming_retries between 0 and 9007199254740991 and
    publish_retries between 0 and 9007199254740991 and rollback_retries between 0 and 9007199254740991 and
    runs between 0 and 9007199254740991 and run_sum_ms between 0 and 9007199254740991 and
    late_sum_ms between 0 and 9007199254740991 and late_0 between 0 and 9007199254740991 and
    late_1 between 0 and 9007199254740991 and late_2 between 0 and 9007199254740991 and
    late_3 between 0 and 9007199254740991 and late_4 between 0 and 9007199254740991 and
    late_5 between 0 and 9007199254740991 and late_6 between 0 and 9007199254740991 and
    run_max_ms between 0 and 9007199254740991 and late_max_ms between 0 and 9007199254740991 and
    due_max between 0 and 9007199254740991 and at between -9007199254740991 and 9007199254740991
  )
) strict, without rowid;

CREATE TABLE escapement_history_writers (
  ns integer not null,
  node text not null,
  sequence integer not null,
  seen_at integer not null,
  primary key (ns, node)
) strict, without rowid;

CREATE TABLE escapement_jobs (
  seq integer primary key autoincrement,
  ns integer not null,
  id text not null,
  name text not null,
  queue text not null,
  delivery text not null,
  priority integer not null,
  run_at integer not null,
  fire_at integer not null,
  enqueued_at integer not null,
  attempts integer not null,
  max_crashes integer not null,
  slot integer not null,
  shelf text,
  blocked integer not null default 0,
  expire_at integer,
  attempt integer not null default 0,
  crashes integer not null default 0,
  redrives integer not null default 0,
  rollbacks integer not null default 0,
  version integer not null default 1,
  token integer not null default 0,
  settled integer not null default 0,
  settled_by text,
  claimer text,
  claimed_at integer,
  cancel_requested integer not null default 0,
  ahead integer not null default 0,
  relayed integer not null default 0,
  lane text,
  concurrency_key text,
  rate_key text,
  unique_key text,
  unique_ms integer,
  debounce_key text,
  after_failure text,
  schedule text,
  retention text,
  tags text not null default '[]',
  reason text,
  error text,
  progress text,
  input text not null,
  check (
    attempt between 0 and 1000000000 and token between 0 and 1000000000 and settled between 0 and 1000000000 and
    crashes between 0 and 1000000000 and redrives between 0 and 1000000000 and rollbacks between 0 and 1000000000 and
    version between 0 and 1000000000 and priority between -2147483647 and 2147483647 and
    run_at between -9007199254740991 and 9007199254740991 and fire_at between -9007199254740991 and 9007199254740991 and
    enqueued_at between -9007199254740991 and 9007199254740991 and
    claimed_at between -9007199254740991 and 9007199254740991 and expire_at between -9007199254740991 and 9007199254740991
  )
) strict;

CREATE INDEX escapement_jobs_blocked on escapement_jobs (ns) where blocked = 1;

CREATE INDEX escapement_jobs_fragile on escapement_jobs (ns, queue, name, priority desc, run_at) where shelf = 'fragile';

CREATE INDEX escapement_jobs_gate on escapement_jobs (ns, lane, queue, name, run_at) where shelf = 'lane';

CREATE UNIQUE INDEX escapement_jobs_id on escapement_jobs (ns, id);

CREATE INDEX escapement_jobs_lane on escapement_jobs (ns, lane, priority desc, run_at) where shelf = 'lane';

CREATE INDEX escapement_jobs_relay on escapement_jobs (ns, slot, run_at) where shelf = 'relay';

CREATE TABLE escapement_migrations (
  version integer primary key,
  name text not null,
  breaking integer not null,
  applied_at integer not null
) strict;

CREATE TABLE escapement_namespaces (
  ns integer primary key,
  name text not null unique,
  partition_count integer not null default 0
) strict;

CREATE TABLE escapement_nodes (
  ns integer not null,
  id text not null,
  started_at integer not null,
  seen_at integer not null,
  record text not null,
  primary key (ns, id)
) strict, without rowid;

CREATE TABLE escapement_occurrences (
  ns integer not null,
  key text not null,
  fire_at integer not null,
  until integer,
  count integer not null,
  fate text not null,
  reason text,
  job_id text,
  planned_at integer not null,
  node text not null,
  primary key (ns, key, fire_at),
  check (
    count between 0 and 9007199254740991 and fire_at between -9007199254740991 and 9007199254740991 and
    until between -9007199254740991 and 9007199254740991 and planned_at between -9007199254740991 and 9007199254740991
  )
) strict, without rowid;

CREATE INDEX escapement_occurrences_planned on escapement_occurrences (ns, planned_at);

CREATE TABLE escapement_open (
  seq integer primary key,
  ns integer not null
) strict;

CREATE TABLE escapement_parents (
  parent integer not null,
  child integer not null,
  position integer not null,
  primary key (parent, child)
) strict, without rowid;

CREATE INDEX escapement_parents_child on escapement_parents (child, position);

CREATE TABLE escapement_partitions (
  ns integer not null,
  partition integer not null,
  first_slot integer not null,
  end_slot integer not null,
  epoch integer not null,
  owner text,
  lease_boot integer,
  lease_until integer,
  mark integer,
  primary key (ns, partition),
  check (
    epoch between 0 and 1000000000 and lease_until between -9007199254740991 and 9007199254740991 and
    mark between -9007199254740991 and 9007199254740991
  )
) strict, without rowid;

CREATE TABLE escapement_plain (
  ns integer not null,
  queue text not null,
  name text not null,
  priority integer not null,
  run_at integer not null,
  seq integer not null,
  expire_at integer,
  direct integer not null default 0,
  untried integer not null default 0,
  primary key (ns, queue, name, priority desc, run_at, seq),
  check (
    priority between -2147483647 and 2147483647 and run_at between -9007199254740991 and 9007199254740991 and
    expire_at between -9007199254740991 and 9007199254740991
  )
) strict, without rowid;

CREATE TABLE escapement_queues (
  ns integer not null,
  queue text not null,
  paused integer not null default 0,
  concurrency integer,
  rate_limit integer,
  rate_per_ms integer,
  primary key (ns, queue),
  check (
    concurrency between 1 and 9007199254740991 and rate_limit between 1 and 9007199254740991 and
    rate_per_ms between 1 and 9007199254740991
  )
) strict, without rowid;

CREATE TABLE escapement_schedule_versions (
  ns integer not null,
  key text not null,
  version integer not null,
  primary key (ns, key)
) strict, without rowid;

CREATE TABLE escapement_schedules (
  ns integer not null,
  key text not null,
  spec text not null,
  job text not null,
  paused integer not null,
  next_at integer,
  version integer not null,
  fired integer not null,
  last_job_id text,
  created_at integer not null,
  updated_at integer not null,
  primary key (ns, key),
  check (
    version between 0 and 1000000000 and fired between 0 and 9007199254740991 and
    next_at between -9007199254740991 and 9007199254740991
  )
) strict, without rowid;

CREATE INDEX escapement_schedules_next on escapement_schedules (ns, next_at) where paused = 0 and next_at is not null;

CREATE TABLE escapement_trail (
  entry integer primary key autoincrement,
  job integer not null,
  at integer not null,
  kind text not null,
  attempt integer not null,
  token integer not null,
  claimer text,
  text text,
  error text
) strict;

CREATE INDEX escapement_trail_job on escapement_trail (job);

CREATE TABLE escapement_unique_keys (
  ns integer not null,
  key text not null,
  job integer not null,
  until integer,
  primary key (ns, key),
  check (
    until between -9007199254740991 and 9007199254740991
  )
) strict, without rowid;

CREATE INDEX escapement_unique_keys_job on escapement_unique_keys (job);

CREATE TABLE escapement_untried (
  seq integer primary key,
  ns integer not null,
  expire_at integer,
  debounce_key text,
  check (
    expire_at between -9007199254740991 and 9007199254740991
  )
) strict;

CREATE INDEX escapement_untried_debounce on escapement_untried (ns, debounce_key) where debounce_key is not null;

CREATE INDEX escapement_untried_expiring on escapement_untried (ns, expire_at) where expire_at is not null;

CREATE TABLE escapement_windows (
  ns integer not null,
  kind text not null,
  key text not null,
  started_at integer not null,
  used integer not null,
  per_ms integer not null,
  primary key (ns, kind, key),
  check (
    used between 0 and 9007199254740991 and per_ms between 0 and 9007199254740991 and
    started_at between -9007199254740991 and 9007199254740991
  )
) strict, without rowid;

CREATE TABLE sqlite_sequence(name,seq);
