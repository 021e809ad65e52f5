-- The schema of jobs, queues, nodes, schedules and partitions. It runs with the store's schema as the only one in the
-- search path, and so do the functions in the folder of the same name, which are the store's verbs.
-- Instants are milliseconds since 1970 by the server's clock. Text compares by its bytes, so that no locale matters.

-- partition_count is how many partitions there shall be; there are fewer while the holders of the old ones have to give them back.
create table namespaces (
  ns integer generated always as identity primary key,
  name text collate "C" not null unique,
  partition_count integer not null default 0
);

-- The order of enqueueing: each call draws a number for every thousand of its jobs, which are counted within it (next_seqs).
create sequence job_order;

-- Jobs that are not terminal. seq is the order of enqueueing and stays with a job when it moves to history and back. shelf says which index holds a waiting job: plain, lane (it has a limited key), fragile (as
-- isFragile in state.ts), or relay; null when it is not waiting.
-- settled is the last token whose holder ended its claim itself: it tells a repeated finish from a stale one. Who that was is in
-- settled_by, or, while that is null, still in claimer.
-- retention is how long it is kept once it has succeeded, is cancelled, dead or lost; null where the app decides.
-- A renewed lease changes no index, so that it is a HOT update; the fill factor leaves it room.
create table jobs (
  seq bigint primary key with (fillfactor = 50),
  run_at bigint not null,
  fire_at bigint not null,
  enqueued_at bigint not null,
  expire_at bigint,
  claimed_at bigint,
  lease_until bigint,
  claim_sequence bigint,
  unique_ms bigint,
  ns integer not null,
  priority integer not null,
  attempts integer not null,
  max_crashes integer not null,
  slot integer not null,
  attempt integer not null default 0,
  crashes integer not null default 0,
  redrives integer not null default 0,
  rollbacks integer not null default 0,
  version integer not null default 1,
  token integer not null default 0,
  settled integer not null default 0,
  cancel_requested boolean not null default false,
  relayed boolean not null default false,
  state text collate "C" not null,
  id text collate "C" not null,
  name text collate "C" not null,
  queue text collate "C" not null,
  delivery text collate "C" not null,
  settled_by text collate "C",
  claimer text collate "C",
  concurrency_key text collate "C",
  rate_key text collate "C",
  unique_key text collate "C",
  debounce_key text collate "C",
  after_failure text collate "C",
  schedule text collate "C",
  retention bigint[],
  tags text[] collate "C" not null default '{}',
  reason text,
  error text,
  progress text,
  result text,
  input text not null,
  lane text collate "C" generated always as (
    case when concurrency_key is not null then 'concurrency ' || concurrency_key
         when rate_key is not null then 'rate ' || rate_key end
  ) stored,
  shelf text collate "C" generated always as (
    case when state <> 'waiting' then null
         when relayed then 'relay'
         when crashes > 0 and crashes >= max_crashes - 1 then 'fragile'
         when concurrency_key is null and rate_key is null then 'plain'
         else 'lane' end
  ) stored
) with (
  fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 1, autovacuum_analyze_scale_factor = 0.05
);

-- Each claim writes its row anew, and so a second entry here: half of each page is left for them.
create unique index jobs_id on jobs (ns, id) with (fillfactor = 50);
create index jobs_plain on jobs (ns, queue, name, (-priority), run_at, seq) where shelf = 'plain';
create index jobs_lane on jobs (ns, lane, (-priority), run_at, seq) where shelf = 'lane';
create index jobs_gate on jobs (ns, lane, queue, name, run_at) where shelf = 'lane';
create index jobs_fragile on jobs (ns, queue, name, run_at) where shelf = 'fragile';
create index jobs_relay on jobs (ns, slot, run_at, seq) where shelf = 'relay';
create index jobs_active on jobs (ns, queue) where state = 'active' and not relayed;
create index jobs_active_key on jobs (ns, concurrency_key) where state = 'active' and not relayed and concurrency_key is not null;
create index jobs_named on jobs (ns, slot) where state = 'active' and relayed;
create index jobs_blocked on jobs (ns, seq) where state = 'blocked';
create index jobs_expiring on jobs (ns, expire_at, seq) where expire_at is not null and attempt = 0 and state in ('waiting', 'blocked');
create index jobs_debounce on jobs (ns, debounce_key, seq) where debounce_key is not null and state = 'waiting' and token = 0;

-- Terminal jobs, without what only claims need. They leave by retention or redrive.
-- forget_at is when one leaves whose own retention says so; the others leave so long after finished_at as prune is told.
create table history (
  seq bigint primary key,
  run_at bigint not null,
  fire_at bigint not null,
  enqueued_at bigint not null,
  expire_at bigint,
  claimed_at bigint,
  finished_at bigint not null,
  unique_ms bigint,
  ns integer not null,
  priority integer not null,
  attempts integer not null,
  max_crashes integer not null,
  slot integer not null,
  attempt integer not null,
  crashes integer not null,
  redrives integer not null,
  rollbacks integer not null,
  version integer not null,
  token integer not null,
  settled integer not null,
  cancel_requested boolean not null,
  relayed boolean not null,
  state text collate "C" not null,
  id text collate "C" not null,
  name text collate "C" not null,
  queue text collate "C" not null,
  delivery text collate "C" not null,
  settled_by text collate "C",
  claimer text collate "C",
  concurrency_key text collate "C",
  rate_key text collate "C",
  unique_key text collate "C",
  debounce_key text collate "C",
  after_failure text collate "C",
  schedule text collate "C",
  retention bigint[],
  tags text[] collate "C" not null,
  reason text,
  error text,
  progress text,
  result text,
  input text not null,
  forget_at bigint generated always as (
    finished_at + retention[case state when 'succeeded' then 1 when 'cancelled' then 2 when 'dead' then 3 when 'lost' then 4 end]
  ) stored
);

create unique index history_id on history (ns, id);
create index history_finished on history (ns, state, finished_at, seq) where forget_at is null;
create index history_forget on history (ns, forget_at, seq) where forget_at is not null;
create index history_notable on history (ns, state, seq) where state <> 'succeeded';

-- Ids that a unique or debounced job absorbed.
create table aliases (
  ns integer not null,
  id text collate "C" not null,
  job bigint not null,
  primary key (ns, id)
);
create index aliases_job on aliases (job);

-- Who took a unique or debounce key last; the row is what serialises those who ask for the key. until null: a unique key is held
-- while the job is in jobs. job 0: nobody took it yet.
create table keys (
  ns integer not null,
  kind text collate "C" not null,
  key text collate "C" not null,
  job bigint not null,
  until bigint,
  primary key (ns, kind, key)
);
create index keys_job on keys (job);

-- What a blocked job still waits for, in the order it was given.
create table parents (
  parent bigint not null,
  child bigint not null,
  position integer not null,
  primary key (parent, child)
);
create index parents_child on parents (child, position);

-- Children that were enqueued in somebody's open transaction, where their parents could not be held: a parent may have ended
-- meanwhile without seeing them. The reaper looks once.
create table doubts (
  ns integer not null,
  child bigint not null,
  primary key (ns, child)
);

create table trail (
  entry bigint generated always as identity primary key,
  job bigint not null,
  at bigint not null,
  attempt integer not null,
  token integer not null,
  kind text collate "C" not null,
  claimer text,
  text text,
  error text
);
create index trail_job on trail (job, entry);

-- What happened to a lane since it was looked at: a job came to wait in it (changed = false), or one left it, moved in it or freed
-- its key. Everybody may add to it; only who holds the lane's row may take away, and looks at the lane after that.
create table arrivals (
  ns integer not null,
  entry bigint generated always as identity,
  lane text collate "C" not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  at bigint not null,
  changed boolean not null,
  primary key (ns, entry)
);
create index arrivals_lane on arrivals (ns, lane);

-- One row for each lane that claims look at: whoever claims from the lane, or writes its gates, locks it.
create table lanes (
  ns integer not null,
  lane text collate "C" not null,
  primary key (ns, lane)
);

-- One row for each lane, queue and name with waiting jobs on the lane shelf: when looking at them may bring a job.
-- ready_at null: closed. With a concurrency_limit, because that many jobs with the key were active: the end of one of them opens it.
-- Without, because a job of another queue or name is first in the lane: any change of the lane opens it.
create table gates (
  ns integer not null,
  lane text collate "C" not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  ready_at bigint,
  concurrency_limit integer,
  primary key (ns, lane, queue, name)
) with (fillfactor = 80);
-- The sum keeps it from whoever looks for a lane: in a plan made while there were no gates, one index is as good as the other.
create index gates_ready on gates ((ns + 0), queue, name, ready_at, concurrency_limit);

-- Rate windows: of a queue ('queue') or of a rate key ('key').
create table windows (
  ns integer not null,
  kind text collate "C" not null,
  key text collate "C" not null,
  started_at bigint not null,
  used integer not null,
  per_ms bigint not null,
  primary key (ns, kind, key)
) with (fillfactor = 80);

create table claimers (
  ns integer not null,
  claimer text collate "C" not null,
  sequence bigint not null,
  seen_at bigint not null,
  primary key (ns, claimer)
) with (fillfactor = 50);

create table queues (
  ns integer not null,
  queue text collate "C" not null,
  paused boolean not null default false,
  concurrency integer,
  rate_limit integer,
  rate_per_ms bigint,
  primary key (ns, queue)
);

create table nodes (
  ns integer not null,
  id text collate "C" not null,
  started_at bigint not null,
  seen_at bigint not null,
  record text not null,
  primary key (ns, id)
) with (fillfactor = 80);

create table schedules (
  ns integer not null,
  key text collate "C" not null,
  spec text not null,
  job text not null,
  paused boolean not null,
  next_at bigint,
  version integer not null,
  fired bigint not null default 0,
  last_job_id text,
  created_at bigint not null,
  updated_at bigint not null,
  primary key (ns, key)
);
create index schedules_next on schedules (ns, next_at) where not paused and next_at is not null;

-- Outlives its schedule, so that no version comes twice.
create table schedule_versions (
  ns integer not null,
  key text collate "C" not null,
  version integer not null,
  primary key (ns, key)
);

create table occurrences (
  ns integer not null,
  key text collate "C" not null,
  fire_at bigint not null,
  until bigint,
  count integer not null,
  fate text collate "C" not null,
  reason text,
  job_id text,
  planned_at bigint not null,
  node text not null,
  primary key (ns, key, fire_at)
);
create index occurrences_planned on occurrences (ns, planned_at, key, fire_at);

create table partitions (
  ns integer not null,
  partition integer not null,
  first_slot integer not null,
  end_slot integer not null,
  epoch integer not null,
  owner text,
  lease_until bigint,
  mark bigint,
  primary key (ns, partition)
) with (fillfactor = 50);
