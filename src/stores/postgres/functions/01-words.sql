-- Helpers that the other files share. Names that begin with p_ are parameters, with v_ variables.
-- A session keeps the plans of functions as long as it lasts, even one made while a table was empty. So rows that a list names are
-- looked up one by one, and the planner must not be able to reverse that and read a whole namespace because it expects the list to be
-- longer. Either the look-up is in a subquery behind `offset 0`, which no condition passes; or the list also carries
-- the namespace, and no other condition fits an index (`is not distinct from` never does).
--
-- Where a job is, and who may move it. A job is in one place: its turn in turns, a shelf or blocked (columns of jobs), active, or ended. Each
-- move is one statement or one transaction.
-- Locks are taken in this order: the job's row in jobs, its turn, its row in active. Callers that must not wait skip locked rows.
-- - A plain claim locks only the turn, and moves the job from turns to active. A success locks only the row in active, and moves it to ended.
-- - Every other verb that moves a job, or changes an idle one, locks its row in jobs first (lock_job): claims from a shelf, retries, the reaper,
--   cancel, update, redrive, prune, and the end of a parent. Only they bring a job back to turns, to a shelf or out of ended.
-- So for the holder of the row in jobs, a job can move in one direction only: from its turn to active, from there to ended. Searched in this
-- order, one statement each, it is always found.

-- The store's clock. Only tests pass a time.
create function now_ms(p_now bigint) returns bigint language sql volatile as $$
  select coalesce(p_now, (extract(epoch from clock_timestamp()) * 1000)::bigint)
$$;

-- A count that rises by one. Tables refuse more than a billion, and where something else has set it there, a refused write would hold up all
-- that is written with it.
create function risen(p_count integer) returns integer language sql immutable as $$
  select least(p_count, 999999999) + 1
$$;

-- What a verb changed, published once it is committed: queues in which a job became claimable (anywhere: possibly in any),
-- jobs that ended, active jobs that were asked to stop.
create type notices as (queues text[], anywhere boolean, ended text[], cancels text[]);

create function no_notices() returns notices language sql immutable as $$
  select row('{}'::text[], false, '{}'::text[], '{}'::text[])::notices
$$;

-- Null if there is nothing to publish.
create function notices_to_json(n notices) returns json language sql immutable as $$
  select case when n.queues = '{}' and not n.anywhere and n.ended = '{}' and n.cancels = '{}' then null
    else json_build_object('queues', n.queues, 'anywhere', n.anywhere, 'ended', n.ended, 'cancels', n.cancels) end
$$;

-- The functions read the latest committed state in each statement; a frozen snapshot would hide an id that is taken.
create function require_read_committed() returns void language plpgsql as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'escapement needs a READ COMMITTED transaction, this one is %', upper(current_setting('transaction_isolation'))
      using errcode = 'ES001';
  end if;
end
$$;

-- Undoes an enqueueing statement if any part of the batch was refused; the error carries the answers. Parts with bound jobs answer objects
-- whose results are lists of outcome, id and missing parent.
create function all_or_none(p_answers json) returns json language plpgsql as $$
begin
  if exists (
    select from json_array_elements(p_answers) as part (answer),
      json_array_elements(case json_typeof(answer) when 'object' then answer -> 'results' end) as one (result)
    where result ->> 0 = 'refused'
  ) then
    raise exception 'a part of the batch was refused' using errcode = 'ES005', detail = p_answers::text;
  end if;
  return p_answers;
end
$$;

-- Adds a line to the trail of a job, before the change that it describes is written; the oldest lines make room.
create function tell(p_job all_jobs, p_now bigint, p_kind text, p_text text, p_error text) returns void language plpgsql as $$
begin
  insert into trail (job, at, kind, attempt, token, claimer, text, error)
  values (p_job.seq, p_now, p_kind, p_job.attempt, p_job.token, p_job.claimer, p_text, p_error);
  delete from trail where job = p_job.seq and entry <= (
    select entry from trail where job = p_job.seq order by entry desc limit 1 offset 200
  );
end
$$;

-- Marks a lane as changed, so the next claim looks at it. Plain and relayed jobs are in no lane.
create function mark_lane(p_job all_jobs, p_at bigint, p_changed boolean) returns void language plpgsql as $$
begin
  if p_job.lane is null or p_job.relayed then return; end if;
  insert into arrivals (ns, lane, queue, name, at, changed) values (p_job.ns, p_job.lane, p_job.queue, p_job.name, p_at, p_changed);
end
$$;

-- The lane of a job.
create function lane_of(p_concurrency_key text, p_rate_key text) returns text language sql immutable as $$
  select case when p_concurrency_key is not null then 'concurrency ' || p_concurrency_key when p_rate_key is not null then 'rate ' || p_rate_key end
$$;

-- The shelf of a job that waits.
create function shelf_of(p_relayed boolean, p_lane text, p_crashes integer, p_max_crashes integer) returns text language sql immutable as $$
  select case when p_relayed then 'relay' when is_fragile(p_crashes, p_max_crashes) then 'fragile' when p_lane is not null then 'lane' end
$$;

-- Puts a waiting job in its place, now that its row is written: a plain one gets its turn. One that can expire or be debounced is
-- entered in untried; so is a blocked one that can expire. The caller holds or has inserted its row.
create function enter_line(p_seq bigint) returns void language plpgsql as $$
begin
  with job as (
    select * from jobs where seq = p_seq
  ), lined as (
    insert into turns (ns, queue, name, rank, run_at, seq, expire_at, direct)
    select ns, queue, name, -priority, run_at, seq, case when attempt = 0 then expire_at end, not may_claim_ahead(delivery, lane is not null, crashes, ahead)
    from job where shelf is null and not blocked
  )
  insert into untried (seq, ns, expire_at, debounce_key)
  select seq, ns, expires_at, open_debounce from (
    select seq, ns, case when attempt = 0 then expire_at end as expires_at, case when token = 0 and not blocked then debounce_key end as open_debounce
    from job
  ) open where expires_at is not null or open_debounce is not null
  on conflict (seq) do update set ns = excluded.ns, expire_at = excluded.expire_at, debounce_key = excluded.debounce_key;
end
$$;

-- Takes an idle job from its place, as it was before the change by the caller, who holds it.
create function leave_line(p_job all_jobs) returns void language plpgsql as $$
begin
  if is_idle(p_job.state) is not true then return; end if;
  if p_job.expire_at is not null or p_job.debounce_key is not null then delete from untried where seq = p_job.seq; end if;
  if p_job.state = 'blocked' or p_job.shelf is not null then return; end if;
  delete from turns where ns = p_job.ns and queue = p_job.queue and name = p_job.name and rank = -p_job.priority
    and run_at = p_job.run_at and seq = p_job.seq;
end
$$;

-- A job in its current state. Index: jobs_pkey, active_pkey, ended_pkey.
create function job_of(p_seq bigint) returns all_jobs language plpgsql as $$
declare
  v_job all_jobs;
begin
  select * into v_job from all_jobs where seq = p_seq;
  return v_job;
end
$$;

-- Locks a job wherever it is and returns it, nulls if there is none. Index: jobs_pkey, turns_pkey, active_pkey.
create function lock_job(p_seq bigint) returns all_jobs language plpgsql as $$
declare
  v_job jobs;
begin
  select * into v_job from jobs where seq = p_seq for update;
  if not found then return null; end if;
  if v_job.shelf is null and not v_job.blocked then
    perform from turns where ns = v_job.ns and queue = v_job.queue and name = v_job.name and rank = -v_job.priority
      and run_at = v_job.run_at and seq = p_seq for update;
    if not found then perform from active where seq = p_seq for update; end if;
  end if;
  return job_of(p_seq);
end
$$;

-- The same for an idle job, without waiting; nulls if another transaction holds it or it is not idle.
create function try_lock_idle(p_seq bigint) returns all_jobs language plpgsql as $$
declare
  v_job jobs;
  v_idle all_jobs;
begin
  select * into v_job from jobs where seq = p_seq for update skip locked;
  if not found then return null; end if;
  if v_job.shelf is null and not v_job.blocked then
    perform from turns where ns = v_job.ns and queue = v_job.queue and name = v_job.name and rank = -v_job.priority
      and run_at = v_job.run_at and seq = p_seq for update skip locked;
    if not found then return null; end if;
  end if;
  v_idle := job_of(p_seq);
  if is_idle(v_idle.state) then return v_idle; end if;
  return null;
end
$$;

-- Keeps an unfinished job from ending until this transaction is over. Index: jobs_pkey, turns_pkey, active_pkey.
create function hold_open(p_seq bigint) returns void language plpgsql as $$
declare
  v_job jobs;
begin
  select * into v_job from jobs where seq = p_seq for share;
  if not found or v_job.shelf is not null or v_job.blocked then return; end if;
  perform from turns where ns = v_job.ns and queue = v_job.queue and name = v_job.name and rank = -v_job.priority
    and run_at = v_job.run_at and seq = p_seq for share;
  if not found then perform from active where seq = p_seq for key share; end if;
end
$$;

-- What a dispatch needs, in the order that rows.ts reads.
create function claimed_json(j all_jobs) returns json language sql stable as $$
  select json_build_array(j.id, j.name, j.queue, j.delivery, j.priority, j.tags, j.run_at, j.fire_at, j.enqueued_at, j.attempt,
    j.attempts, j.crashes, j.max_crashes, j.redrives, j.token, j.schedule, j.input, j.cancel_requested)
$$;
