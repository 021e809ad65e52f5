-- Enqueueing.

-- Numbers in enqueue order, for this many jobs of one call.
create function next_seqs(p_count integer) returns bigint[] language plpgsql as $$
begin
  return array(
    select block.number * 1000 + place from (select nextval('job_order') as number, first from generate_series(0, p_count - 1, 1000) as first offset 0) block
    cross join lateral generate_series(0, least(999, p_count - 1 - block.first)) as place order by 1
  );
end
$$;

-- Inserts jobs that do not depend on others, with these numbers, gives them their turns, and returns how many were new. What many of them share
-- is stored once in p_kinds. It only joins lists, and must not scan one list for each item of the other.
-- p_unsure: an id may exist already; otherwise an existing one is an error, and inserting costs less. There are then usually few jobs, and each
-- is counted by its own row: grouping them costs more.
create function insert_loose(
  p_ns integer, p_now bigint, p_seqs bigint[], p_kinds json, p_kind integer[], p_ids text[], p_inputs text[], p_slots integer[],
  p_run_at bigint[], p_unsure boolean
) returns bigint language plpgsql set enable_nestloop = off as $$
declare
  v_added bigint;
begin
  if p_unsure then
    with added as (
      insert into jobs (
        seq, ns, id, name, queue, delivery, priority, run_at, fire_at, enqueued_at, expire_at, attempts, max_crashes, slot, relayed,
        concurrency_key, rate_key, schedule, after_failure, retention, tags, input, lane, shelf
      )
      select * from loose_rows(p_ns, p_now, p_seqs, p_kinds, p_kind, p_ids, p_inputs, p_slots, p_run_at) on conflict (ns, id) do nothing
      returning seq, name, queue, delivery, priority, run_at, expire_at, shelf
    ), lined as (
      insert into turns (ns, queue, name, rank, run_at, seq, expire_at, direct)
      select p_ns, queue, name, -priority, run_at, seq, expire_at, not may_claim_ahead(delivery, false, 0, false) from added where shelf is null
    ), counted as (
      insert into count_changes (ns, jobs, kind, queue, name) select p_ns, 1, 'all', queue, name from added
    )
    select count(*) into v_added from added;
  else
    with added as (
      insert into jobs (
        seq, ns, id, name, queue, delivery, priority, run_at, fire_at, enqueued_at, expire_at, attempts, max_crashes, slot, relayed,
        concurrency_key, rate_key, schedule, after_failure, retention, tags, input, lane, shelf
      )
      select * from loose_rows(p_ns, p_now, p_seqs, p_kinds, p_kind, p_ids, p_inputs, p_slots, p_run_at)
      returning seq, name, queue, delivery, priority, run_at, expire_at, shelf
    ), lined as (
      insert into turns (ns, queue, name, rank, run_at, seq, expire_at, direct)
      select p_ns, queue, name, -priority, run_at, seq, expire_at, not may_claim_ahead(delivery, false, 0, false) from added where shelf is null
    ), counted as (
      insert into count_changes (ns, jobs, kind, queue, name) select p_ns, count(*), 'all', queue, name from added group by queue, name
    )
    select count(*) into v_added from added;
  end if;
  return v_added;
end
$$;

-- The rows to insert, in id order, in which every call locks them.
create function loose_rows(
  p_ns integer, p_now bigint, p_seqs bigint[], p_kinds json, p_kind integer[], p_ids text[], p_inputs text[], p_slots integer[],
  p_run_at bigint[]
) returns table (
  seq bigint, ns integer, id text, name text, queue text, delivery text, priority integer, run_at bigint, fire_at bigint,
  enqueued_at bigint, expire_at bigint, attempts integer, max_crashes integer, slot integer, relayed boolean, concurrency_key text,
  rate_key text, schedule text, after_failure text, retention bigint[], tags text[], input text, lane text, shelf text
) language sql stable as $$
  select p_seqs[t.place::integer], p_ns, t.id, k.name, k.queue, k.delivery, k.priority, coalesce(t.run_at, p_now + k.delay_ms),
    coalesce(k.fire_at, t.run_at, p_now + k.delay_ms), p_now, coalesce(t.run_at, p_now + k.delay_ms) + k.expire_in_ms, k.attempts,
    k.max_crashes, t.slot, coalesce(k.relayed, false), k.concurrency_key, k.rate_key, k.schedule, k.after_failure, k.retention,
    coalesce(k.tags, '{}'), t.input, lane_of(k.concurrency_key, k.rate_key),
    shelf_of(coalesce(k.relayed, false), lane_of(k.concurrency_key, k.rate_key), 0, 0)
  from unnest(p_kind, p_ids, p_inputs, p_slots, p_run_at) with ordinality as t (kind, id, input, slot, run_at, place)
  join rows from (json_to_recordset(p_kinds) as (
    name text, queue text, delivery text, priority integer, delay_ms bigint, attempts integer, max_crashes integer, fire_at bigint,
    expire_in_ms bigint, relayed boolean, concurrency_key text, rate_key text, schedule text, after_failure text, retention bigint[],
    tags text[]
  )) with ordinality as k (
    name, queue, delivery, priority, delay_ms, attempts, max_crashes, fire_at, expire_in_ms, relayed, concurrency_key, rate_key, schedule,
    after_failure, retention, tags, kind
  ) on k.kind = t.kind
  order by t.id collate "C", t.place
$$;

-- The places of ids that are known as aliases. Ids that rise with time are beyond the last one there, and need no look-up.
create function find_known(p_ns integer, p_ids text[]) returns integer[] language plpgsql as $$
declare
  v_last text := (select id from aliases where ns = p_ns order by id desc limit 1);
begin
  if v_last is null or (select min(id collate "C") from unnest(p_ids) as id) > v_last then return '{}'; end if;
  return array(
    select t.place from unnest(p_ids) with ordinality as t (id, place)
    cross join lateral (select from aliases a where a.ns = p_ns and a.id = t.id offset 0) known
  );
end
$$;

-- Takes back a job that this transaction added and whose id turned out to be known.
create function withdraw_job(p_seq bigint) returns void language plpgsql as $$
begin
  perform leave_line(job_of(p_seq));
  with gone as (
    delete from jobs where seq = p_seq returning ns, queue, name
  )
  insert into count_changes (ns, jobs, kind, queue, name) select ns, -1, 'all', queue, name from gone;
end
$$;

-- Enqueues jobs that do not depend on others: without parents, unique or debounce key.
-- Inputs: for each job its kind (its place in p_kinds, starting at 1), id, input, slot and perhaps its time. p_keyed: some have a lane.
-- p_expiring: some can expire.
-- Promise: an id that is known in any state, or as an alias, adds nothing. Inserting first and checking aliases afterwards, in a separate
-- statement, leaves no gap: another call that inserts the same id in the meantime waits at jobs_id.
-- Returns null when all were added, else a list of [place, id of the existing job]. Index: jobs_id, aliases_pkey.
create function enqueue_loose(
  p_ns integer, p_now bigint, p_kinds json, p_kind integer[], p_ids text[], p_inputs text[], p_slots integer[], p_run_at bigint[],
  p_keyed boolean, p_expiring boolean
) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_seqs bigint[] := next_seqs(cardinality(p_ids));
  v_known integer[];
  v_added bigint;
begin
  -- Large batches mostly have new ids. A small batch is just as likely to be a repetition, which should not begin with an error.
  if cardinality(p_ids) >= 10 then
    begin
      v_added := insert_loose(p_ns, v_now, v_seqs, p_kinds, p_kind, p_ids, p_inputs, p_slots, p_run_at, false);
    exception when unique_violation then
      v_added := null;
    end;
  end if;
  if v_added is null then
    v_added := insert_loose(p_ns, v_now, v_seqs, p_kinds, p_kind, p_ids, p_inputs, p_slots, p_run_at, true);
  end if;
  if p_expiring then
    insert into untried (seq, ns, expire_at) select j.* from unnest(v_seqs) as asked cross join lateral (
      select seq, ns, expire_at from jobs where seq = asked offset 0) j where j.expire_at is not null;
  end if;
  v_known := find_known(p_ns, p_ids);
  if v_known <> '{}' then
    perform withdraw_job(v_seqs[place]) from unnest(v_known) as place;
  end if;
  if p_keyed then
    insert into arrivals (ns, lane, queue, name, at, changed)
    select p_ns, lane, queue, name, min(run_at), false from unnest(v_seqs) as asked cross join lateral (
      select lane, queue, name, run_at, shelf from jobs where seq = asked offset 0) j
    where j.shelf = 'lane' group by lane, queue, name;
  end if;
  if v_added = cardinality(p_ids) and v_known = '{}' then return null; end if;
  return (
    select json_agg(json_build_array(t.place - 1, coalesce((
      select j.id from aliases a left join jobs j on j.seq = a.job where a.ns = p_ns and a.id = t.id), t.id)))
    from unnest(p_ids) with ordinality as t (id, place) left join lateral (
      select true as added from jobs j where j.seq = v_seqs[t.place::integer] offset 0) own on true
    where own.added is null
  );
end
$$;

-- The state of the job that an id names, itself or by an alias; nothing if it is unknown.
-- p_hold: an unfinished job is kept from ending until this transaction is over.
create function resolve_id(p_ns integer, p_id text, p_hold boolean, out v_seq bigint, out v_id text, out v_state text) language plpgsql as $$
begin
  select seq into v_seq from jobs where ns = p_ns and id = p_id;
  if not found then select job into v_seq from aliases where ns = p_ns and id = p_id; end if;
  if v_seq is not null then select r.* into v_seq, v_id, v_state from resolve_seq(v_seq, p_hold) r; end if;
end
$$;

create function resolve_seq(p_seq bigint, p_hold boolean, out v_seq bigint, out v_id text, out v_state text) language plpgsql as $$
begin
  if p_hold then perform hold_open(p_seq); end if;
  select seq, id, state into v_seq, v_id, v_state from all_jobs where seq = p_seq;
end
$$;

-- Locks a key's row, inserting it if it is missing, and returns the job that holds the key now: for a unique key its holder, for a debounce
-- key nothing.
create function lock_key(p_ns integer, p_kind text, p_key text, p_now bigint) returns bigint language plpgsql as $$
declare
  v_job bigint;
  v_until bigint;
begin
  insert into keys (ns, kind, key, job) values (p_ns, p_kind, p_key, 0) on conflict do nothing;
  select job, until into v_job, v_until from keys where ns = p_ns and kind = p_kind and key = p_key for update;
  if p_kind = 'unique' and v_job > 0 then
    if v_until > p_now then return v_job; end if;
    if v_until is null and exists (select from jobs where seq = v_job) and not exists (select from ended where seq = v_job) then
      return v_job;
    end if;
  end if;
  return null;
end
$$;

-- One job of a call, as json_to_record reads it.
create type new_job as (
  id text, name text, queue text, delivery text, priority integer, run_at bigint, delay_ms bigint, fire_at bigint, expire_in_ms bigint,
  attempts integer, max_crashes integer, slot integer, relayed boolean, concurrency_key text, rate_key text, schedule text,
  after_failure text, retention bigint[], tags text[], input text, after text[], unique_key text, unique_ms bigint, debounce_key text, wait_ms bigint,
  max_ms bigint
);

-- Inserts a job whose id may have been taken in the meantime; returns null in that case.
create function insert_job(p_ns integer, p_new new_job, p_blocked boolean, p_run_at bigint, p_now bigint) returns all_jobs language plpgsql as $$
declare
  v_seq bigint;
  v_lane text := lane_of(p_new.concurrency_key, p_new.rate_key);
begin
  insert into jobs (
    seq, ns, id, blocked, name, queue, delivery, priority, run_at, fire_at, enqueued_at, expire_at, attempts, max_crashes, slot, relayed,
    concurrency_key, rate_key, unique_key, unique_ms, debounce_key, after_failure, schedule, retention, tags, input, lane, shelf
  ) values (
    (next_seqs(1))[1], p_ns, p_new.id, p_blocked, p_new.name, p_new.queue, p_new.delivery, p_new.priority, p_run_at,
    coalesce(p_new.fire_at, p_run_at), p_now, p_run_at + p_new.expire_in_ms, p_new.attempts, p_new.max_crashes, p_new.slot,
    coalesce(p_new.relayed, false), p_new.concurrency_key, p_new.rate_key, p_new.unique_key, p_new.unique_ms, p_new.debounce_key,
    p_new.after_failure, p_new.schedule, p_new.retention, coalesce(p_new.tags, '{}'), p_new.input, v_lane,
    case when not p_blocked then shelf_of(coalesce(p_new.relayed, false), v_lane, 0, 0) end
  ) on conflict (ns, id) do nothing returning seq into v_seq;
  if v_seq is null then return null; end if;
  if exists (select from aliases where ns = p_ns and id = p_new.id) then
    delete from jobs where seq = v_seq;
    return null;
  end if;
  insert into count_changes (ns, jobs, kind, queue, name) values (p_ns, 1, 'all', p_new.queue, p_new.name);
  perform enter_line(v_seq);
  return job_of(v_seq);
end
$$;

-- Remembers an id as an alias of a job. It is taken in jobs_id first, so no one can add a job with that id at the same time.
create function absorb(p_ns integer, p_new new_job, p_target bigint, p_now bigint) returns boolean language plpgsql as $$
declare
  v_seq bigint := (insert_job(p_ns, p_new, true, p_now, p_now)).seq;
begin
  if v_seq is null then return false; end if;
  perform withdraw_job(v_seq);
  insert into aliases (ns, id, job) values (p_ns, p_new.id, p_target);
  return true;
end
$$;
