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

-- Jobs that are not terminal. seq is the order of enqueueing and stays with a job when it moves to history and back.
-- settled is the last token whose holder ended its claim itself: it tells a repeated finish from a stale one. Who that was is in
-- settled_by, or, while that is null, still in claimer.
-- ahead: it was claimed ahead and is not known to have started (see ClaimParams in store.ts).
-- retention is how long it is kept once it has succeeded, is cancelled, dead or lost; null where the app decides.
--
-- The claim of a plain job is a HOT update: it changes no column that an index knows, and half of each page is left for the new rows. So
-- no index may look at state, attempt, token or another column that a claim changes. What the indexes need of them is in columns that stay
-- null from the first to the last day of a plain job, and that whoever writes a job must keep.
-- Which plain jobs wait is in turns, which are active in claims.
-- lane: of the key that limits it. shelf: relay while it waits for the relay, named while the relay has it; of the others that wait, fragile
-- for those that must run alone, lane for those with a lane (as shelf_of says). held_key: its concurrency key while it is active and not the
-- relay's. expires_at: its expiry while it can expire. open_debounce: its debounce key while it can be debounced.
-- What indexes know comes first among the columns, where it is read quickest: each update compares it. What claims change comes in the middle, so
-- that the log of a HOT update holds only that.
create table jobs (
  seq bigint primary key,
  run_at bigint not null,
  ns integer not null,
  priority integer not null,
  slot integer not null,
  id text collate "C" not null,
  name text collate "C" not null,
  queue text collate "C" not null,
  state text collate "C" not null,
  attempt integer not null default 0,
  token integer not null default 0,
  settled integer not null default 0,
  crashes integer not null default 0,
  version integer not null default 1,
  ahead boolean not null default false,
  cancel_requested boolean not null default false,
  relayed boolean not null default false,
  claimed_at bigint,
  lease_until bigint,
  claim_sequence bigint,
  claimer text collate "C",
  settled_by text collate "C",
  reason text,
  error text,
  progress text,
  result text,
  redrives integer not null default 0,
  rollbacks integer not null default 0,
  attempts integer not null,
  max_crashes integer not null,
  fire_at bigint not null,
  enqueued_at bigint not null,
  expire_at bigint,
  unique_ms bigint,
  delivery text collate "C" not null,
  concurrency_key text collate "C",
  rate_key text collate "C",
  unique_key text collate "C",
  debounce_key text collate "C",
  after_failure text collate "C",
  schedule text collate "C",
  retention bigint[],
  tags text[] collate "C" not null default '{}',
  input text not null,
  lane text collate "C",
  shelf text collate "C",
  held_key text collate "C",
  expires_at bigint,
  open_debounce text collate "C"
) with (
  fillfactor = 45, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 1, autovacuum_analyze_scale_factor = 0.05
);

create unique index jobs_id on jobs (ns, id);
create index jobs_lane on jobs (ns, lane, (-priority), run_at, seq) where shelf = 'lane';
create index jobs_gate on jobs (ns, lane, queue, name, run_at) where shelf = 'lane';
create index jobs_fragile on jobs (ns, queue, name, run_at) where shelf = 'fragile';
create index jobs_relay on jobs (ns, slot, run_at, seq) where shelf = 'relay';
create index jobs_named on jobs (ns, slot) where shelf = 'named';
create index jobs_held_key on jobs (ns, held_key) where held_key is not null;
create index jobs_expiring on jobs (ns, expires_at, seq) where expires_at is not null;
create index jobs_debounce on jobs (ns, open_debounce, seq) where open_debounce is not null;

-- One row for each plain job that waits: a job that is waiting and on no shelf. rank is the negative priority. expire_at: null where it
-- cannot expire any more. direct: it may not be claimed ahead. Rows come and go and never change; only who holds the lock of a job may
-- add or remove its row.
create table turns (
  ns integer not null,
  rank integer not null,
  run_at bigint not null,
  seq bigint not null,
  expire_at bigint,
  direct boolean not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  primary key (ns, queue, name, rank, run_at, seq)
) with (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.05
);

-- One row for each claim that took jobs, except for the relay's: where to look for active jobs. until: no lease among them ends before
-- that. queues: no job is of another one. open: how many have not ended, if nothing went wrong with counting: it only tells when the row can
-- go. What counts is the job: it is active under a claim when its claimer and claim_sequence say so.
create table claims (
  ns integer not null,
  open integer not null,
  sequence bigint not null,
  until bigint not null,
  claimer text collate "C" not null,
  queues text[] collate "C" not null,
  seqs bigint[] not null,
  primary key (ns, claimer, sequence)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index claims_until on claims (ns, until);
-- Not worth compressing: it is written once and read, as a rule, never.
alter table claims alter seqs set storage external;

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

-- What people did to jobs, queues and schedules. id is the caller's, so that a repeated write is the same entry. outcome is JSON, null
-- while nobody knows.
create table audit (
  entry bigint generated always as identity primary key,
  ns integer not null,
  at bigint not null,
  id text collate "C" not null,
  actor text collate "C" not null,
  action text collate "C" not null,
  target text collate "C" not null,
  reason text,
  outcome text
);
create unique index audit_id on audit (ns, id);
create index audit_at on audit (ns, at);
