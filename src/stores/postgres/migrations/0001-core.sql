-- The tables of jobs, queues, nodes, schedules and partitions. It runs with the store's schema as the only one in the search path.
-- The store's verbs are in ../functions, installed for each version of the library in its own schema.
-- Instants are milliseconds since 1970 by the server's clock. Strings compare by their bytes, so no locale matters.

-- partition_count is how many partitions there should be; there are fewer until the holders of the old ones give them back.
create table namespaces (
  ns integer generated always as identity primary key,
  name text collate "C" not null unique,
  partition_count integer not null default 0
);

-- Enqueue order: each call draws one number for every thousand of its jobs, which are counted within it (next_seqs).
create sequence job_order;

-- A job: what it was enqueued with, and what its earlier claims left. It stays until the job is forgotten. The tables below hold its current
-- by the tables below, so a plain job is claimed and succeeds without its row being written or locked: see the view all_jobs (../functions) for the whole of it.
-- seq is the enqueue order.
-- shelf says which index holds a waiting job: lane (it has a limited key), fragile, or relay (see shelf_of). It is null for a job that is
-- not waiting, and for a plain job, which has its turn in turns. lane: the lane of the key that limits it.
-- attempt, token, claimer, claimed_at, ahead and reason are as the last ended claim left them; a successful claim leaves nothing here.
-- settled is the last token whose holder ended its claim itself: it distinguishes a repeated finish from a stale one. That holder is in
-- settled_by, or, while that is null, in claimer.
-- ahead: its last claim was made ahead, and its holder fell silent (see ClaimParams in src/store/claims.ts).
-- retention is how long it is kept once it has succeeded, is cancelled, dead or lost; null if the app decides.
create table jobs (
  seq bigint primary key,
  run_at bigint not null,
  fire_at bigint not null,
  enqueued_at bigint not null,
  ns integer not null,
  priority integer not null,
  slot integer not null,
  attempts integer not null,
  max_crashes integer not null,
  attempt integer not null default 0,
  token integer not null default 0,
  settled integer not null default 0,
  crashes integer not null default 0,
  redrives integer not null default 0,
  rollbacks integer not null default 0,
  version integer not null default 1,
  blocked boolean not null default false,
  ahead boolean not null default false,
  cancel_requested boolean not null default false,
  relayed boolean not null default false,
  id text collate "C" not null,
  name text collate "C" not null,
  queue text collate "C" not null,
  delivery text collate "C" not null,
  tags text[] collate "C" not null default '{}',
  input text not null,
  shelf text collate "C",
  lane text collate "C",
  concurrency_key text collate "C",
  rate_key text collate "C",
  unique_key text collate "C",
  debounce_key text collate "C",
  after_failure text collate "C",
  schedule text collate "C",
  expire_at bigint,
  unique_ms bigint,
  retention bigint[],
  claimed_at bigint,
  claimer text collate "C",
  settled_by text collate "C",
  reason text,
  error text,
  progress text,
  check (
    attempt between 0 and 1000000000 and token between 0 and 1000000000 and settled between 0 and 1000000000 and
    crashes between 0 and 1000000000 and redrives between 0 and 1000000000 and rollbacks between 0 and 1000000000 and
    version between 0 and 1000000000 and priority between -2147483647 and 2147483647 and
    run_at between -9007199254740991 and 9007199254740991 and fire_at between -9007199254740991 and 9007199254740991 and
    enqueued_at between -9007199254740991 and 9007199254740991 and
    claimed_at between -9007199254740991 and 9007199254740991 and expire_at between -9007199254740991 and 9007199254740991
  )
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.05);

create unique index jobs_id on jobs (ns, id);
create index jobs_lane on jobs (ns, lane, (-priority), run_at, seq) where shelf = 'lane';
create index jobs_gate on jobs (ns, lane, queue, name, run_at) where shelf = 'lane';
create index jobs_fragile on jobs (ns, queue, name, run_at) where shelf = 'fragile';
create index jobs_relay on jobs (ns, slot, run_at, seq) where shelf = 'relay';
create index jobs_blocked on jobs (ns, seq) where blocked;

-- The shelf of waiting plain jobs, in claim order. rank is the negated priority. expire_at: null if it can no longer expire.
-- direct: it may not be claimed ahead. Rows are inserted and deleted, never updated.
create table turns (
  ns integer not null,
  rank integer not null,
  run_at bigint not null,
  seq bigint not null,
  expire_at bigint,
  direct boolean not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  primary key (ns, queue, name, rank, run_at, seq),
  check (
    rank between -2147483647 and 2147483647 and run_at between -9007199254740991 and 9007199254740991 and
    expire_at between -9007199254740991 and 9007199254740991
  )
) with (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.05
);

-- What may happen to an idle job before its first attempt: it expires, or, never claimed, takes the input of another job with its key.
create table untried (
  seq bigint primary key,
  ns integer not null,
  expire_at bigint,
  debounce_key text collate "C",
  check (
    expire_at between -9007199254740991 and 9007199254740991
  )
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index untried_expiring on untried (ns, expire_at, seq) where expire_at is not null;
create index untried_debounce on untried (ns, debounce_key, seq) where debounce_key is not null;
create index untried_ns on untried (ns);

-- Claims in progress, and jobs that the relay has named, which have no lease and no sequence. reason: why it must stop.
create table active (
  seq bigint primary key,
  claimed_at bigint not null,
  lease_until bigint,
  claim_sequence bigint,
  ns integer not null,
  attempt integer not null,
  token integer not null,
  slot integer not null,
  ahead boolean not null,
  relayed boolean not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  claimer text collate "C" not null,
  concurrency_key text collate "C",
  retention bigint[],
  reason text,
  check (
    attempt between 0 and 1000000000 and token between 0 and 1000000000 and
    claimed_at between -9007199254740991 and 9007199254740991 and lease_until between -9007199254740991 and 9007199254740991
  )
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index active_key on active (ns, concurrency_key) where concurrency_key is not null and not relayed;
create index active_named on active (ns, slot) where relayed;

-- One row for each claim that took jobs, except the relay's: where to look for active jobs. until: no lease among them ends
-- earlier. queues: no job is of another queue. open: how many have not ended, as long as the count is right; it only shows when the
-- row can go. The truth is in active: a job is under a claim when its claimer and claim_sequence say so.
create table claims (
  ns integer not null,
  open integer not null,
  sequence bigint not null,
  until bigint not null,
  claimer text collate "C" not null,
  queues text[] collate "C" not null,
  seqs bigint[] not null,
  primary key (ns, claimer, sequence),
  check (
    until between -9007199254740991 and 9007199254740991
  )
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index claims_until on claims (ns, until);
-- Not worth compressing: it is written once and rarely read.
alter table claims alter seqs set storage external;

-- Jobs that have ended. They leave by retention or redrive.
-- forget_at is when a job with its own retention leaves; the others leave once the retention given to prune has passed since finished_at.
create table ended (
  seq bigint primary key,
  finished_at bigint not null,
  claimed_at bigint,
  forget_at bigint,
  ns integer not null,
  attempt integer not null,
  token integer not null,
  settled integer not null,
  state text collate "C" not null,
  claimer text collate "C",
  reason text,
  result text,
  check (
    attempt between 0 and 1000000000 and token between 0 and 1000000000 and
    finished_at between -9007199254740991 and 9007199254740991 and
    claimed_at between -9007199254740991 and 9007199254740991 and forget_at between -9007199254740991 and 9007199254740991
  )
);
create index ended_forget on ended (ns, forget_at, seq) where forget_at is not null;
create index ended_notable on ended (ns, state, seq) where state <> 'succeeded';
create index ended_finished on ended (ns, state, finished_at, seq) where state <> 'succeeded' and forget_at is null;
create index ended_kept on ended (ns, state, finished_at, seq) where forget_at is not null;

-- Jobs that succeeded, one row per call, queue and name. The reaper counts them (fold_counts) and moves the row to successes.
create table fresh_successes (
  ns integer not null,
  jobs integer not null,
  finished_at bigint not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  seqs bigint[] not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
alter table fresh_successes alter seqs set storage external;

-- Where prune and questions find jobs that succeeded, in the order in which they ended. So one that ends with others costs no extra index entry.
-- The truth is in ended: a job that is gone, or has its own retention, is skipped.
create table successes (
  ns integer not null,
  finished_at bigint not null,
  seqs bigint[] not null
);
create index successes_finished on successes (ns, finished_at);
alter table successes alter seqs set storage external;

-- How many jobs of a queue and name there are (kind all), and how many of them have ended in each state: the sum of counts, count_changes and
-- fresh_successes. A call that adds, ends, redrives or forgets jobs only adds rows, so no call waits for a row that others write. The reaper folds
-- them into counts.
create table counts (
  ns integer not null,
  jobs bigint not null check (jobs between -9007199254740991 and 9007199254740991),
  kind text collate "C" not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  primary key (ns, queue, name, kind)
) with (fillfactor = 50);
create table count_changes (
  ns integer not null,
  jobs bigint not null check (jobs between -9007199254740991 and 9007199254740991),
  kind text collate "C" not null,
  queue text collate "C" not null,
  name text collate "C" not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Ids that a unique or debounced job absorbed.
create table aliases (
  ns integer not null,
  id text collate "C" not null,
  job bigint not null,
  primary key (ns, id)
);
create index aliases_job on aliases (job);

-- Who last took a unique or debounce key; the row serialises callers that ask for the key. until null: a unique key is held
-- until the job ends. job 0: it was never taken.
create table keys (
  ns integer not null,
  kind text collate "C" not null,
  key text collate "C" not null,
  job bigint not null,
  until bigint,
  primary key (ns, kind, key),
  check (
    until between -9007199254740991 and 9007199254740991
  )
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

-- Children that were enqueued in a caller's open transaction, where their parents could not be held: a parent may have ended
-- in the meantime without seeing them. The reaper checks once.
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

-- What happened to a lane since it was last looked at: a job started to wait in it (changed = false), or one left it, moved in it or freed
-- its key. Any call may add rows; only the holder of the lane's row may delete them, and must look at the lane after that.
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

-- One row for each lane that claims look at: a call that claims from the lane, or writes its gates, locks it.
create table lanes (
  ns integer not null,
  lane text collate "C" not null,
  primary key (ns, lane)
);

-- One row for each lane, queue and name with waiting jobs on the lane shelf: when looking at them may find a job.
-- ready_at null: closed. With a concurrency_limit, because that many jobs with the key were active: when one of them ends, it opens.
-- Without, because a job of another queue or name is first in the lane: any change of the lane opens it.
create table gates (
  ns integer not null,
  lane text collate "C" not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  ready_at bigint,
  concurrency_limit integer,
  primary key (ns, lane, queue, name),
  check (
    ready_at between -9007199254740991 and 9007199254740991
  )
) with (fillfactor = 80);
-- The sum hides this index from queries that look for a lane: in a plan made while there were no gates, either index looks as good.
create index gates_ready on gates ((ns + 0), queue, name, ready_at, concurrency_limit);

-- Rate windows: of a queue ('queue') or of a rate key ('key').
create table windows (
  ns integer not null,
  kind text collate "C" not null,
  key text collate "C" not null,
  started_at bigint not null,
  used integer not null,
  per_ms bigint not null,
  primary key (ns, kind, key),
  check (
    used between 0 and 9007199254740991 and per_ms between 0 and 9007199254740991 and
    started_at between -9007199254740991 and 9007199254740991
  )
) with (fillfactor = 80);

create table claimers (
  ns integer not null,
  claimer text collate "C" not null,
  sequence bigint not null,
  seen_at bigint not null,
  primary key (ns, claimer),
  check (
    sequence between -9007199254740991 and 9007199254740991
  )
) with (fillfactor = 50);

create table queues (
  ns integer not null,
  queue text collate "C" not null,
  paused boolean not null default false,
  concurrency integer,
  rate_limit integer,
  rate_per_ms bigint,
  primary key (ns, queue),
  check (
    concurrency between 1 and 9007199254740991 and rate_limit between 1 and 9007199254740991 and
    rate_per_ms between 1 and 9007199254740991
  )
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
  primary key (ns, key),
  check (
    version between 0 and 1000000000 and fired between 0 and 9007199254740991 and
    next_at between -9007199254740991 and 9007199254740991
  )
);
create index schedules_next on schedules (ns, next_at) where not paused and next_at is not null;

-- Outlives its schedule, so no version is used twice.
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
  primary key (ns, key, fire_at),
  check (
    count between 0 and 9007199254740991 and fire_at between -9007199254740991 and 9007199254740991 and
    until between -9007199254740991 and 9007199254740991 and planned_at between -9007199254740991 and 9007199254740991
  )
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
  primary key (ns, partition),
  check (
    epoch between 0 and 1000000000 and lease_until between -9007199254740991 and 9007199254740991 and
    mark between -9007199254740991 and 9007199254740991
  )
) with (fillfactor = 50);

-- What people did to jobs, queues and schedules. id comes from the caller, so a repeated write is the same entry. outcome is JSON, null
-- while it is unknown.
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

-- What has ended, summed by minute and by hour, each starting at the instant at. late_0 to late_6 count by how late jobs started. series is
-- job-minute, job-hour (each queue and name), queue-minute, queue-hour (each queue, name is ''), all-minute or all-hour (both are '').
create table history (
  ns integer not null,
  series text collate "C" not null,
  at bigint not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  succeeded bigint not null,
  failed bigint not null,
  crashed bigint not null,
  dead bigint not null,
  lost bigint not null,
  cancelled bigint not null,
  existing bigint not null,
  absorbed bigint not null,
  stale bigint not null,
  naming_retries bigint not null,
  publish_retries bigint not null,
  rollback_retries bigint not null,
  runs bigint not null,
  run_sum_ms bigint not null,
  late_sum_ms bigint not null,
  late_0 bigint not null,
  late_1 bigint not null,
  late_2 bigint not null,
  late_3 bigint not null,
  late_4 bigint not null,
  late_5 bigint not null,
  late_6 bigint not null,
  run_max_ms bigint not null,
  late_max_ms bigint not null,
  due_max bigint not null,
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
);

-- How far each node has written the history, so a repeated call adds nothing.
create table history_writers (
  ns integer not null,
  node text collate "C" not null,
  sequence bigint not null,
  seen_at bigint not null,
  primary key (ns, node)
);

-- Versions of the functions that are installed: name is the schema that holds them, library the version that brought them. used_at moves about
-- once a day while a process calls them. One that has not been used for a week goes when the next is installed.
create table function_versions (
  name text collate "C" primary key,
  library text not null,
  installed_at timestamptz not null default now(),
  used_at timestamptz not null default now()
);
