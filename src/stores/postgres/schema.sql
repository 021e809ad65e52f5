-- Read from a database after its migrations, by `npm run schemas`; do not edit.

create table active (
  seq bigint not null,
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
  constraint active_check CHECK ((((attempt >= 0) AND (attempt <= 1000000000)) AND ((token >= 0) AND (token <= 1000000000)) AND ((claimed_at >= '-9007199254740991'::bigint) AND (claimed_at <= '9007199254740991'::bigint)) AND ((lease_until >= '-9007199254740991'::bigint) AND (lease_until <= '9007199254740991'::bigint)))),
  constraint active_pkey PRIMARY KEY (seq)
) with (autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000);
CREATE INDEX active_key ON escapement.active USING btree (ns, concurrency_key) WHERE ((concurrency_key IS NOT NULL) AND (NOT relayed));
CREATE INDEX active_named ON escapement.active USING btree (ns, slot) WHERE relayed;

create table aliases (
  ns integer not null,
  id text collate "C" not null,
  job bigint not null,
  constraint aliases_pkey PRIMARY KEY (ns, id)
);
CREATE INDEX aliases_job ON escapement.aliases USING btree (job);

create table arrivals (
  ns integer not null,
  entry bigint generated always as identity not null,
  lane text collate "C" not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  at bigint not null,
  changed boolean not null,
  constraint arrivals_pkey PRIMARY KEY (ns, entry)
);
CREATE INDEX arrivals_lane ON escapement.arrivals USING btree (ns, lane);

create table audit (
  entry bigint generated always as identity not null,
  ns integer not null,
  at bigint not null,
  id text collate "C" not null,
  actor text collate "C" not null,
  action text collate "C" not null,
  target text collate "C" not null,
  reason text,
  outcome text,
  constraint audit_pkey PRIMARY KEY (entry)
);
CREATE INDEX audit_at ON escapement.audit USING btree (ns, at);
CREATE UNIQUE INDEX audit_id ON escapement.audit USING btree (ns, id);

create table claimers (
  ns integer not null,
  claimer text collate "C" not null,
  sequence bigint not null,
  seen_at bigint not null,
  constraint claimers_pkey PRIMARY KEY (ns, claimer),
  constraint claimers_sequence_check CHECK (((sequence >= '-9007199254740991'::bigint) AND (sequence <= '9007199254740991'::bigint)))
) with (fillfactor=50);

create table claims (
  ns integer not null,
  open integer not null,
  sequence bigint not null,
  until bigint not null,
  claimer text collate "C" not null,
  queues text[] collate "C" not null,
  seqs bigint[] not null /* storage e */,
  constraint claims_pkey PRIMARY KEY (ns, claimer, sequence),
  constraint claims_until_check CHECK (((until >= '-9007199254740991'::bigint) AND (until <= '9007199254740991'::bigint)))
) with (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000, fillfactor=50);
CREATE INDEX claims_until ON escapement.claims USING btree (ns, until);

create table count_changes (
  ns integer not null,
  jobs bigint not null,
  kind text collate "C" not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  constraint count_changes_jobs_check CHECK (((jobs >= '-9007199254740991'::bigint) AND (jobs <= '9007199254740991'::bigint)))
) with (autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000);

create table counts (
  ns integer not null,
  jobs bigint not null,
  kind text collate "C" not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  constraint counts_jobs_check CHECK (((jobs >= '-9007199254740991'::bigint) AND (jobs <= '9007199254740991'::bigint))),
  constraint counts_pkey PRIMARY KEY (ns, queue, name, kind)
) with (fillfactor=50);

create table doubts (
  ns integer not null,
  child bigint not null,
  constraint doubts_pkey PRIMARY KEY (ns, child)
);

create table ended (
  seq bigint not null,
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
  constraint ended_check CHECK ((((attempt >= 0) AND (attempt <= 1000000000)) AND ((token >= 0) AND (token <= 1000000000)) AND ((finished_at >= '-9007199254740991'::bigint) AND (finished_at <= '9007199254740991'::bigint)) AND ((claimed_at >= '-9007199254740991'::bigint) AND (claimed_at <= '9007199254740991'::bigint)) AND ((forget_at >= '-9007199254740991'::bigint) AND (forget_at <= '9007199254740991'::bigint)))),
  constraint ended_pkey PRIMARY KEY (seq)
);
CREATE INDEX ended_finished ON escapement.ended USING btree (ns, state, finished_at, seq) WHERE ((state <> 'succeeded'::text) AND (forget_at IS NULL));
CREATE INDEX ended_forget ON escapement.ended USING btree (ns, forget_at, seq) WHERE (forget_at IS NOT NULL);
CREATE INDEX ended_kept ON escapement.ended USING btree (ns, state, finished_at, seq) WHERE (forget_at IS NOT NULL);
CREATE INDEX ended_notable ON escapement.ended USING btree (ns, state, seq) WHERE (state <> 'succeeded'::text);

create table fresh_successes (
  ns integer not null,
  jobs integer not null,
  finished_at bigint not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  seqs bigint[] not null /* storage e */
) with (autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000);

create table function_versions (
  name text collate "C" not null,
  library text not null,
  installed_at timestamp with time zone not null default now(),
  used_at timestamp with time zone not null default now(),
  constraint function_versions_pkey PRIMARY KEY (name)
);

create table gates (
  ns integer not null,
  lane text collate "C" not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  ready_at bigint,
  concurrency_limit integer,
  constraint gates_pkey PRIMARY KEY (ns, lane, queue, name),
  constraint gates_ready_at_check CHECK (((ready_at >= '-9007199254740991'::bigint) AND (ready_at <= '9007199254740991'::bigint)))
) with (fillfactor=80);
CREATE INDEX gates_ready ON escapement.gates USING btree (((ns + 0)), queue, name, ready_at, concurrency_limit);

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
  constraint history_check CHECK ((((succeeded >= 0) AND (succeeded <= '9007199254740991'::bigint)) AND ((failed >= 0) AND (failed <= '9007199254740991'::bigint)) AND ((crashed >= 0) AND (crashed <= '9007199254740991'::bigint)) AND ((dead >= 0) AND (dead <= '9007199254740991'::bigint)) AND ((lost >= 0) AND (lost <= '9007199254740991'::bigint)) AND ((cancelled >= 0) AND (cancelled <= '9007199254740991'::bigint)) AND ((existing >= 0) AND (existing <= '9007199254740991'::bigint)) AND ((absorbed >= 0) AND (absorbed <= '9007199254740991'::bigint)) AND ((stale >= 0) AND (stale <= '9007199254740991'::bigint)) AND ((naming_retries >= 0) AND (naming_retries <= '9007199254740991'::bigint)) AND ((publish_retries >= 0) AND (publish_retries <= '9007199254740991'::bigint)) AND ((rollback_retries >= 0) AND (rollback_retries <= '9007199254740991'::bigint)) AND ((runs >= 0) AND (runs <= '9007199254740991'::bigint)) AND ((run_sum_ms >= 0) AND (run_sum_ms <= '9007199254740991'::bigint)) AND ((late_sum_ms >= 0) AND (late_sum_ms <= '9007199254740991'::bigint)) AND ((late_0 >= 0) AND (late_0 <= '9007199254740991'::bigint)) AND ((late_1 >= 0) AND (late_1 <= '9007199254740991'::bigint)) AND ((late_2 >= 0) AND (late_2 <= '9007199254740991'::bigint)) AND ((late_3 >= 0) AND (late_3 <= '9007199254740991'::bigint)) AND ((late_4 >= 0) AND (late_4 <= '9007199254740991'::bigint)) AND ((late_5 >= 0) AND (late_5 <= '9007199254740991'::bigint)) AND ((late_6 >= 0) AND (late_6 <= '9007199254740991'::bigint)) AND ((run_max_ms >= 0) AND (run_max_ms <= '9007199254740991'::bigint)) AND ((late_max_ms >= 0) AND (late_max_ms <= '9007199254740991'::bigint)) AND ((due_max >= 0) AND (due_max <= '9007199254740991'::bigint)) AND ((at >= '-9007199254740991'::bigint) AND (at <= '9007199254740991'::bigint)))),
  constraint history_pkey PRIMARY KEY (ns, series, at, queue, name)
);

create table history_writers (
  ns integer not null,
  node text collate "C" not null,
  sequence bigint not null,
  seen_at bigint not null,
  constraint history_writers_pkey PRIMARY KEY (ns, node)
);

create table jobs (
  seq bigint not null,
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
  tags text[] collate "C" not null default '{}'::text[],
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
  constraint jobs_check CHECK ((((attempt >= 0) AND (attempt <= 1000000000)) AND ((token >= 0) AND (token <= 1000000000)) AND ((settled >= 0) AND (settled <= 1000000000)) AND ((crashes >= 0) AND (crashes <= 1000000000)) AND ((redrives >= 0) AND (redrives <= 1000000000)) AND ((rollbacks >= 0) AND (rollbacks <= 1000000000)) AND ((version >= 0) AND (version <= 1000000000)) AND ((priority >= '-2147483647'::integer) AND (priority <= 2147483647)) AND ((run_at >= '-9007199254740991'::bigint) AND (run_at <= '9007199254740991'::bigint)) AND ((fire_at >= '-9007199254740991'::bigint) AND (fire_at <= '9007199254740991'::bigint)) AND ((enqueued_at >= '-9007199254740991'::bigint) AND (enqueued_at <= '9007199254740991'::bigint)) AND ((claimed_at >= '-9007199254740991'::bigint) AND (claimed_at <= '9007199254740991'::bigint)) AND ((expire_at >= '-9007199254740991'::bigint) AND (expire_at <= '9007199254740991'::bigint)))),
  constraint jobs_pkey PRIMARY KEY (seq)
) with (autovacuum_analyze_scale_factor=0.05, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000);
CREATE INDEX jobs_blocked ON escapement.jobs USING btree (ns, seq) WHERE blocked;
CREATE INDEX jobs_fragile ON escapement.jobs USING btree (ns, queue, name, run_at) WHERE (shelf = 'fragile'::text);
CREATE INDEX jobs_gate ON escapement.jobs USING btree (ns, lane, queue, name, run_at) WHERE (shelf = 'lane'::text);
CREATE UNIQUE INDEX jobs_id ON escapement.jobs USING btree (ns, id);
CREATE INDEX jobs_lane ON escapement.jobs USING btree (ns, lane, ((- priority)), run_at, seq) WHERE (shelf = 'lane'::text);
CREATE INDEX jobs_relay ON escapement.jobs USING btree (ns, slot, run_at, seq) WHERE (shelf = 'relay'::text);

create table keys (
  ns integer not null,
  kind text collate "C" not null,
  key text collate "C" not null,
  job bigint not null,
  until bigint,
  constraint keys_pkey PRIMARY KEY (ns, kind, key),
  constraint keys_until_check CHECK (((until >= '-9007199254740991'::bigint) AND (until <= '9007199254740991'::bigint)))
);
CREATE INDEX keys_job ON escapement.keys USING btree (job);

create table lanes (
  ns integer not null,
  lane text collate "C" not null,
  constraint lanes_pkey PRIMARY KEY (ns, lane)
);

create table migrations (
  version integer not null,
  name text not null,
  breaking boolean not null,
  applied_at timestamp with time zone not null default now(),
  constraint migrations_pkey PRIMARY KEY (version)
);

create table namespaces (
  ns integer generated always as identity not null,
  name text collate "C" not null,
  partition_count integer not null default 0,
  constraint namespaces_name_key UNIQUE (name),
  constraint namespaces_pkey PRIMARY KEY (ns)
);

create table nodes (
  ns integer not null,
  id text collate "C" not null,
  started_at bigint not null,
  seen_at bigint not null,
  record text not null,
  constraint nodes_pkey PRIMARY KEY (ns, id)
) with (fillfactor=80);

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
  constraint occurrences_check CHECK ((((count >= 0) AND (count <= '9007199254740991'::bigint)) AND ((fire_at >= '-9007199254740991'::bigint) AND (fire_at <= '9007199254740991'::bigint)) AND ((until >= '-9007199254740991'::bigint) AND (until <= '9007199254740991'::bigint)) AND ((planned_at >= '-9007199254740991'::bigint) AND (planned_at <= '9007199254740991'::bigint)))),
  constraint occurrences_pkey PRIMARY KEY (ns, key, fire_at)
);
CREATE INDEX occurrences_planned ON escapement.occurrences USING btree (ns, planned_at, key, fire_at);

create table parents (
  parent bigint not null,
  child bigint not null,
  position integer not null,
  constraint parents_pkey PRIMARY KEY (parent, child)
);
CREATE INDEX parents_child ON escapement.parents USING btree (child, "position");

create table partitions (
  ns integer not null,
  partition integer not null,
  first_slot integer not null,
  end_slot integer not null,
  epoch integer not null,
  owner text,
  lease_until bigint,
  mark bigint,
  constraint partitions_check CHECK ((((epoch >= 0) AND (epoch <= 1000000000)) AND ((lease_until >= '-9007199254740991'::bigint) AND (lease_until <= '9007199254740991'::bigint)) AND ((mark >= '-9007199254740991'::bigint) AND (mark <= '9007199254740991'::bigint)))),
  constraint partitions_pkey PRIMARY KEY (ns, partition)
) with (fillfactor=50);

create table queues (
  ns integer not null,
  queue text collate "C" not null,
  paused boolean not null default false,
  concurrency integer,
  rate_limit integer,
  rate_per_ms bigint,
  constraint queues_check CHECK ((((concurrency >= 1) AND (concurrency <= '9007199254740991'::bigint)) AND ((rate_limit >= 1) AND (rate_limit <= '9007199254740991'::bigint)) AND ((rate_per_ms >= 1) AND (rate_per_ms <= '9007199254740991'::bigint)))),
  constraint queues_pkey PRIMARY KEY (ns, queue)
);

create table schedule_versions (
  ns integer not null,
  key text collate "C" not null,
  version integer not null,
  constraint schedule_versions_pkey PRIMARY KEY (ns, key)
);

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
  constraint schedules_check CHECK ((((version >= 0) AND (version <= 1000000000)) AND ((fired >= 0) AND (fired <= '9007199254740991'::bigint)) AND ((next_at >= '-9007199254740991'::bigint) AND (next_at <= '9007199254740991'::bigint)))),
  constraint schedules_pkey PRIMARY KEY (ns, key)
);
CREATE INDEX schedules_next ON escapement.schedules USING btree (ns, next_at) WHERE ((NOT paused) AND (next_at IS NOT NULL));

create table successes (
  ns integer not null,
  finished_at bigint not null,
  seqs bigint[] not null /* storage e */
);
CREATE INDEX successes_finished ON escapement.successes USING btree (ns, finished_at);

create table trail (
  entry bigint generated always as identity not null,
  job bigint not null,
  at bigint not null,
  attempt integer not null,
  token integer not null,
  kind text collate "C" not null,
  claimer text,
  text text,
  error text,
  constraint trail_pkey PRIMARY KEY (entry)
);
CREATE INDEX trail_job ON escapement.trail USING btree (job, entry);

create table turns (
  ns integer not null,
  rank integer not null,
  run_at bigint not null,
  seq bigint not null,
  expire_at bigint,
  direct boolean not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  constraint turns_check CHECK ((((rank >= '-2147483647'::integer) AND (rank <= 2147483647)) AND ((run_at >= '-9007199254740991'::bigint) AND (run_at <= '9007199254740991'::bigint)) AND ((expire_at >= '-9007199254740991'::bigint) AND (expire_at <= '9007199254740991'::bigint)))),
  constraint turns_pkey PRIMARY KEY (ns, queue, name, rank, run_at, seq)
) with (autovacuum_analyze_scale_factor=0.05, autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000);

create table untried (
  seq bigint not null,
  ns integer not null,
  expire_at bigint,
  debounce_key text collate "C",
  constraint untried_expire_at_check CHECK (((expire_at >= '-9007199254740991'::bigint) AND (expire_at <= '9007199254740991'::bigint))),
  constraint untried_pkey PRIMARY KEY (seq)
) with (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000);
CREATE INDEX untried_debounce ON escapement.untried USING btree (ns, debounce_key, seq) WHERE (debounce_key IS NOT NULL);
CREATE INDEX untried_expiring ON escapement.untried USING btree (ns, expire_at, seq) WHERE (expire_at IS NOT NULL);
CREATE INDEX untried_ns ON escapement.untried USING btree (ns);

create table windows (
  ns integer not null,
  kind text collate "C" not null,
  key text collate "C" not null,
  started_at bigint not null,
  used integer not null,
  per_ms bigint not null,
  constraint windows_check CHECK ((((used >= 0) AND (used <= '9007199254740991'::bigint)) AND ((per_ms >= 0) AND (per_ms <= '9007199254740991'::bigint)) AND ((started_at >= '-9007199254740991'::bigint) AND (started_at <= '9007199254740991'::bigint)))),
  constraint windows_pkey PRIMARY KEY (ns, kind, key)
) with (fillfactor=80);

create sequence job_order;
