-- The schema of jobs, queues, nodes, schedules and partitions.
-- Every statement may be run again, because MySQL commits each separately and a migration may die between two of them.
-- Instants are milliseconds since 1970 by the server's clock. Ids, names and keys are bytes: the text collations that both
-- servers have ignore trailing spaces.

-- config_version rises with every change of a queue, so a claim knows whether its cached copy is still valid. The row is
-- also the lock under which claims look at limits and lanes.
create table if not exists escapement_namespaces (
  ns int not null auto_increment primary key,
  name varbinary(512) not null,
  config_version bigint not null default 0,
  -- How many partitions there should be; there are fewer until the holders of the old ones give them back.
  partition_count int not null default 0,
  unique key escapement_namespaces_name (name)
) engine = innodb row_format = dynamic;

-- Short numbers for places of jobs. A line is what one index range of escapement_jobs covers: the waiting plain jobs of one queue
-- and name, the active jobs of one queue, the succeeded ones of a namespace, and so on. Relayed jobs of several slots share a line,
-- which holds the first of those slots. A line is created once and never changes.
create table if not exists escapement_lines (
  line int not null auto_increment primary key,
  ns int not null,
  kind enum('plain', 'fragile', 'lane', 'relay', 'blocked', 'active', 'named', 'succeeded', 'dead', 'lost', 'cancelled', 'alias') not null,
  queue varbinary(400) not null default '',
  name varbinary(400) not null default '',
  slot int not null default 0,
  unique key escapement_lines_place (ns, kind, queue, name, slot)
) engine = innodb row_format = dynamic;

-- Every job in any state, and every alias of one, so one unique key guards all ids. seq is the enqueue order.
-- at is the instant by which the job's line is ordered: runAt while it waits, the end of its lease while it is active, the end of
-- its work when it is terminal. urgency is the negated priority while it waits on a line of plain or fragile jobs. When it is terminal,
-- it is kept_<state>, or 0 if that is null: how long this job is kept, encoded by encodeKept in kept.ts. Otherwise it is 0.
-- born identifies the call that added it. settled is the last token whose holder ended its claim itself: it distinguishes a repeated finish
-- from a stale one. claimer and settled_by are numbers of escapement_claimers, 0 for none.
-- ahead: it was claimed before its holder had room for it, and is not known to have started.
-- Columns that every claim and finish changes have a fixed width, so rows are updated in place.
create table if not exists escapement_jobs (
  seq bigint not null auto_increment primary key,
  ns int not null,
  id varbinary(1024) not null,
  state enum('blocked', 'waiting', 'active', 'succeeded', 'dead', 'lost', 'cancelled', 'alias') not null,
  line int not null,
  urgency int not null default 0,
  at bigint not null,
  born bigint not null,
  run_at bigint not null,
  fire_at bigint not null,
  enqueued_at bigint not null,
  claimed_at bigint not null default 0,
  claim_sequence bigint not null default 0,
  claimer int not null default 0,
  token int not null default 0,
  settled int not null default 0,
  settled_by int not null default 0,
  attempt int not null default 0,
  crashes int not null default 0,
  redrives int not null default 0,
  rollbacks int not null default 0,
  version int not null default 1,
  cancel_requested tinyint not null default 0,
  ahead tinyint not null default 0,
  relayed tinyint not null default 0,
  priority int not null,
  attempts int not null,
  max_crashes int not null,
  slot int not null,
  delivery enum('at-most-once', 'at-least-once', 'effectively-once') not null,
  after_failure enum('cancel', 'run') not null default 'cancel',
  name varbinary(400) not null,
  queue varbinary(400) not null,
  expire_at bigint,
  stands_for bigint,
  concurrency_key varbinary(1940),
  rate_key varbinary(1940),
  unique_key varbinary(1940),
  unique_ms bigint,
  schedule varbinary(400),
  kept_succeeded int,
  kept_cancelled int,
  kept_dead int,
  kept_lost int,
  tags longtext,
  reason longtext,
  error longtext,
  progress longtext,
  result longtext,
  input longtext not null,
  unique key escapement_jobs_id (ns, id),
  key escapement_jobs_line (line, urgency, at),
  check (
    attempt between 0 and 1000000000 and token between 0 and 1000000000 and settled between 0 and 1000000000 and
    crashes between 0 and 1000000000 and redrives between 0 and 1000000000 and rollbacks between 0 and 1000000000 and
    version between 0 and 1000000000 and priority between -2147483647 and 2147483647 and
    run_at between -9007199254740991 and 9007199254740991 and fire_at between -9007199254740991 and 9007199254740991 and
    enqueued_at between -9007199254740991 and 9007199254740991 and
    claimed_at between -9007199254740991 and 9007199254740991 and expire_at between -9007199254740991 and 9007199254740991
  )
) engine = innodb row_format = dynamic default charset = utf8mb4 collate = utf8mb4_bin;

-- How many jobs of a queue and name there are (kind all), and how many of them have ended in each state: the sum of counts and
-- count_changes. A call that adds, ends, redrives or forgets jobs only adds rows, so no call waits for a row that others write. The reaper
-- folds them into counts. No job that has ended in a state has a seq above all last_seq of that kind.
create table if not exists escapement_counts (
  ns int not null,
  kind enum('all', 'succeeded', 'dead', 'lost', 'cancelled') not null,
  queue varbinary(400) not null,
  name varbinary(400) not null,
  jobs bigint not null,
  last_seq bigint not null default 0,
  primary key (ns, kind, queue, name)
) engine = innodb row_format = dynamic;
create table if not exists escapement_count_changes (
  entry bigint not null auto_increment primary key,
  ns int not null,
  kind enum('all', 'succeeded', 'dead', 'lost', 'cancelled') not null,
  jobs bigint not null,
  last_seq bigint not null default 0,
  queue varbinary(400) not null,
  name varbinary(400) not null
) engine = innodb row_format = dynamic;

-- The aliases of a job, to forget them with it.
create table if not exists escapement_aliases (
  job bigint not null,
  alias bigint not null,
  primary key (job, alias)
) engine = innodb;

-- Keyed jobs while they wait in their lane, and while they are active and count for their key.
create table if not exists escapement_lane_jobs (
  job bigint not null primary key,
  ns int not null,
  place enum('waiting', 'active') not null,
  lane varbinary(1960) not null,
  urgency int not null,
  run_at bigint not null,
  queue varbinary(400) not null,
  name varbinary(400) not null,
  key escapement_lane_jobs_lane (ns, place, lane, urgency, run_at),
  key escapement_lane_jobs_gate (ns, lane, queue, name, run_at),
  check (
    urgency between -2147483647 and 2147483647 and run_at between -9007199254740991 and 9007199254740991
  )
) engine = innodb row_format = dynamic;

-- One row for each lane, queue and name with waiting jobs in a lane: when looking at them may find a job. Only claims write here,
-- one at a time in a namespace; all other calls leave a hint.
-- ready_at null: closed. With a concurrency_limit, because that many jobs with the key were active: when one of them ends, it opens.
-- Without, because a job of another queue or name is first in the lane: any change of the lane opens it.
create table if not exists escapement_gates (
  ns int not null,
  lane varbinary(1960) not null,
  queue varbinary(400) not null,
  name varbinary(400) not null,
  ready_at bigint,
  concurrency_limit bigint,
  primary key (ns, lane, queue, name),
  key escapement_gates_ready (ns, queue, name, ready_at),
  check (
    ready_at between -9007199254740991 and 9007199254740991
  )
) engine = innodb row_format = dynamic;

-- What happened to lanes since the last claim that looked at them. Rows are only added, so no call waits for another here.
create table if not exists escapement_hints (
  hint bigint not null auto_increment primary key,
  ns int not null,
  kind enum('arrived', 'freed', 'changed') not null,
  lane varbinary(1960) not null,
  queue varbinary(400) not null default '',
  name varbinary(400) not null default '',
  at bigint not null default 0,
  key escapement_hints_ns (ns)
) engine = innodb row_format = dynamic;

-- Jobs that expire unless they start first. A row is void if its job now has another expire_at, or has started.
create table if not exists escapement_expiring (
  ns int not null,
  expire_at bigint not null,
  job bigint not null,
  primary key (ns, expire_at, job)
) engine = innodb;

-- Who last took a unique key. until null: it is held while the job is not terminal.
create table if not exists escapement_unique_keys (
  ns int not null,
  unique_key varbinary(1940) not null,
  job bigint not null,
  until bigint,
  primary key (ns, unique_key),
  key escapement_unique_keys_job (job)
) engine = innodb row_format = dynamic;

-- The jobs that were added with a debounce key. The row with job 0 is the key's lock, and goes with the last of them.
create table if not exists escapement_debounce_keys (
  ns int not null,
  debounce_key varbinary(1940) not null,
  job bigint not null,
  primary key (ns, debounce_key, job),
  key escapement_debounce_keys_job (job)
) engine = innodb row_format = dynamic;

-- What a blocked job still waits for, in the order it was given.
create table if not exists escapement_parents (
  parent bigint not null,
  child bigint not null,
  position int not null,
  primary key (parent, child),
  key escapement_parents_child (child, position)
) engine = innodb;

-- Children enqueued in a caller's transaction, which may last too long to lock their parents: a parent may have ended
-- without seeing its child, so the reaper checks them again.
create table if not exists escapement_adoptions (
  ns int not null,
  child bigint not null,
  primary key (ns, child)
) engine = innodb;

create table if not exists escapement_trail (
  entry bigint not null auto_increment primary key,
  job bigint not null,
  at bigint not null,
  kind enum('failed', 'crashed', 'snoozed', 'rolled-back', 'cancel-requested', 'updated', 'redriven', 'result-not-kept', 'log') not null,
  attempt int not null,
  token int not null,
  claimer int not null,
  text longtext,
  error longtext,
  key escapement_trail_job (job)
) engine = innodb row_format = dynamic default charset = utf8mb4 collate = utf8mb4_bin;

-- Rate windows: of a queue or of a rate key.
create table if not exists escapement_windows (
  ns int not null,
  kind enum('queue', 'key') not null,
  window_key varbinary(1940) not null,
  started_at bigint not null,
  used bigint not null,
  per_ms bigint not null,
  primary key (ns, kind, window_key),
  check (
    used between 0 and 9007199254740991 and per_ms between 0 and 9007199254740991 and
    started_at between -9007199254740991 and 9007199254740991
  )
) engine = innodb row_format = dynamic;

-- Every node that ever claimed. Rows stay: jobs refer to them by number for as long as they are kept.
create table if not exists escapement_claimers (
  claimer int not null auto_increment primary key,
  ns int not null,
  name varbinary(1024) not null,
  sequence bigint not null,
  seen_at bigint not null,
  unique key escapement_claimers_name (ns, name)
) engine = innodb row_format = dynamic;

create table if not exists escapement_queues (
  ns int not null,
  queue varbinary(400) not null,
  paused tinyint not null default 0,
  concurrency bigint,
  rate_limit bigint,
  rate_per_ms bigint,
  primary key (ns, queue),
  check (
    concurrency between 1 and 9007199254740991 and rate_limit between 1 and 9007199254740991 and
    rate_per_ms between 1 and 9007199254740991
  )
) engine = innodb row_format = dynamic;

create table if not exists escapement_nodes (
  ns int not null,
  id varbinary(1024) not null,
  started_at bigint not null,
  seen_at bigint not null,
  record longtext not null,
  primary key (ns, id)
) engine = innodb row_format = dynamic default charset = utf8mb4 collate = utf8mb4_bin;

create table if not exists escapement_schedules (
  ns int not null,
  schedule_key varbinary(400) not null,
  spec longtext not null,
  job longtext not null,
  paused tinyint not null,
  next_at bigint,
  version bigint not null,
  fired bigint not null default 0,
  last_job_id varbinary(1024),
  created_at bigint not null,
  updated_at bigint not null,
  primary key (ns, schedule_key),
  key escapement_schedules_next (ns, paused, next_at),
  check (
    version between 0 and 1000000000 and fired between 0 and 9007199254740991 and
    next_at between -9007199254740991 and 9007199254740991
  )
) engine = innodb row_format = dynamic default charset = utf8mb4 collate = utf8mb4_bin;

-- Outlives its schedule, so no version is used twice. It is also the lock under which a schedule is changed.
create table if not exists escapement_schedule_versions (
  ns int not null,
  schedule_key varbinary(400) not null,
  version bigint not null,
  primary key (ns, schedule_key)
) engine = innodb row_format = dynamic;

create table if not exists escapement_occurrences (
  ns int not null,
  schedule_key varbinary(400) not null,
  fire_at bigint not null,
  until bigint,
  covered bigint not null,
  fate enum('planned', 'skipped') not null,
  reason longtext,
  job_id varbinary(1024),
  planned_at bigint not null,
  node varbinary(1024) not null,
  primary key (ns, schedule_key, fire_at),
  key escapement_occurrences_planned (ns, planned_at),
  check (
    fire_at between -9007199254740991 and 9007199254740991 and until between -9007199254740991 and 9007199254740991 and
    planned_at between -9007199254740991 and 9007199254740991
  )
) engine = innodb row_format = dynamic default charset = utf8mb4 collate = utf8mb4_bin;

create table if not exists escapement_partitions (
  ns int not null,
  partition_number int not null,
  first_slot int not null,
  end_slot int not null,
  epoch bigint not null,
  owner varbinary(1024),
  lease_until bigint not null default 0,
  mark bigint,
  primary key (ns, partition_number),
  check (
    epoch between 0 and 1000000000 and lease_until between -9007199254740991 and 9007199254740991 and
    mark between -9007199254740991 and 9007199254740991
  )
) engine = innodb row_format = dynamic;

-- What people did to jobs, queues and schedules. id comes from the caller, so a repeated write is the same entry. outcome is JSON, null
-- while it is unknown.
create table if not exists escapement_audit (
  entry bigint not null auto_increment primary key,
  ns int not null,
  at bigint not null,
  id varbinary(1024) not null,
  actor varbinary(400) not null,
  action varbinary(400) not null,
  target longtext not null,
  reason longtext,
  outcome longtext,
  unique key escapement_audit_id (ns, id),
  key escapement_audit_at (ns, at)
) engine = innodb row_format = dynamic default charset = utf8mb4 collate = utf8mb4_bin;

-- What has ended, summed by minute and by hour, each starting at the instant at. late_0 to late_6 count by how late jobs started. series is
-- job-minute, job-hour (each queue and name), queue-minute, queue-hour (each queue, name is ''), all-minute or all-hour (both are '').
create table if not exists escapement_history (
  ns int not null,
  series varbinary(16) not null,
  at bigint not null,
  queue varbinary(400) not null,
  name varbinary(400) not null,
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
) engine = innodb row_format = dynamic;

-- How far each node has written the history, so a repeated call adds nothing.
create table if not exists escapement_history_writers (
  ns int not null,
  node varbinary(1024) not null,
  sequence bigint not null,
  seen_at bigint not null,
  primary key (ns, node)
) engine = innodb row_format = dynamic;
