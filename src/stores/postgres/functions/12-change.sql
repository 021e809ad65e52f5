-- Changes to jobs that people and programs ask for.

-- Changes a job that is waiting or blocked. p_change: {input, run_at, delay_ms, priority, concurrency_key, rate_key}, each omitted if
-- it stays as it is. Returns {outcome, state, notices}.
create function update_job(p_ns integer, p_now bigint, p_id text, p_change jsonb) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_job all_jobs := lock_job((resolve_id(p_ns, p_id, false)).v_seq);
  v_notices notices := no_notices();
begin
  if v_job.seq is null then return json_build_object('outcome', 'unknown', 'state', null); end if;
  if not is_idle(v_job.state) then return json_build_object('outcome', 'refused', 'state', v_job.state); end if;
  perform tell(v_job, v_now, 'updated', null, null);
  perform change_idle(v_job,
    coalesce((p_change ->> 'run_at')::bigint, v_now + (p_change ->> 'delay_ms')::bigint, v_job.run_at),
    p_change ? 'run_at' or p_change ? 'delay_ms',
    p_change ->> 'input',
    coalesce((p_change ->> 'priority')::integer, v_job.priority),
    case when p_change ? 'concurrency_key' then p_change ->> 'concurrency_key' else v_job.concurrency_key end,
    case when p_change ? 'rate_key' then p_change ->> 'rate_key' else v_job.rate_key end,
    v_now);
  if v_job.state = 'waiting' then v_notices.queues := array[v_job.queue]; end if;
  return json_build_object('outcome', 'updated', 'state', v_job.state, 'notices', notices_to_json(v_notices));
end
$$;

-- Cancels jobs one by one. Returns {outcomes, notices}.
create function cancel_jobs(p_ns integer, p_now bigint, p_ids text[], p_reason text) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_job all_jobs;
  v_id text;
  v_notices notices := no_notices();
  v_outcomes text[] := '{}';
begin
  foreach v_id in array p_ids loop
    v_job := lock_job((resolve_id(p_ns, v_id, false)).v_seq);
    if v_job.seq is null then
      v_outcomes := v_outcomes || 'unknown'::text;
    elsif not is_open(v_job.state) then
      v_outcomes := v_outcomes || 'terminal'::text;
    elsif v_job.state <> 'active' then
      v_notices := cancel_idle(v_notices, v_job, p_reason, v_now);
      v_outcomes := v_outcomes || 'cancelled'::text;
    else
      if not v_job.cancel_requested then
        perform tell(v_job, v_now, 'cancel-requested', p_reason, null);
        update jobs set cancel_requested = true where seq = v_job.seq;
        update active set reason = p_reason where seq = v_job.seq;
      end if;
      v_notices.cancels := v_notices.cancels || v_job.id;
      v_outcomes := v_outcomes || 'requested'::text;
    end if;
  end loop;
  return json_build_object('outcomes', v_outcomes, 'notices', notices_to_json(v_notices));
end
$$;

-- Sends dead and lost jobs back to waiting, one by one. Returns {outcomes, notices}.
create function redrive_jobs(p_ns integer, p_now bigint, p_ids text[], p_reason text) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_id text;
  v_job all_jobs;
  v_holder bigint;
  v_notices notices := no_notices();
  v_outcomes text[] := '{}';
begin
  foreach v_id in array p_ids loop
    v_job := lock_job((resolve_id(p_ns, v_id, false)).v_seq);
    if v_job.seq is null or not is_redrivable(v_job.state) then
      v_outcomes := v_outcomes || case when v_job.seq is null then 'unknown' else 'refused' end;
      continue;
    end if;
    if v_job.unique_key is not null then
      v_holder := lock_key(p_ns, 'unique', v_job.unique_key, v_now);
      if v_holder <> v_job.seq then
        v_outcomes := v_outcomes || 'held'::text;
        continue;
      end if;
      update keys set job = v_job.seq, until = v_job.enqueued_at + v_job.unique_ms
      where ns = p_ns and kind = 'unique' and key = v_job.unique_key;
    end if;
    perform tell(v_job, v_now, 'redriven', p_reason, null);
    delete from ended where seq = v_job.seq;
    insert into count_changes (ns, jobs, kind, queue, name) values (p_ns, -1, v_job.state, v_job.queue, v_job.name);
    update jobs set run_at = v_now, attempt = 0, crashes = 0, reason = null, expire_at = null, redrives = risen(redrives), ahead = false,
      shelf = shelf_of(relayed, lane, 0, max_crashes)
    where seq = v_job.seq;
    perform enter_line(v_job.seq);
    perform mark_lane(v_job, v_now, false);
    v_notices.queues := v_notices.queues || v_job.queue;
    v_outcomes := v_outcomes || 'redriven'::text;
  end loop;
  return json_build_object('outcomes', v_outcomes, 'notices', notices_to_json(v_notices));
end
$$;

-- Deletes the trail, aliases and keys of ended jobs that the caller has locked. Index: trail_job, aliases_job, keys_job.
create function forget_jobs(p_seqs bigint[]) returns void language plpgsql as $$
begin
  delete from trail where job = any (p_seqs);
  delete from aliases where job = any (p_seqs);
  delete from keys where job = any (p_seqs);
  with gone as materialized (
    delete from ended where seq = any (p_seqs) returning seq, state
  ), forgotten as (
    delete from jobs where seq = any (p_seqs) returning seq, ns, queue, name
  )
  insert into count_changes (ns, jobs, kind, queue, name)
  select ns, -count(*), state, queue, name from forgotten join gone using (seq) group by ns, queue, name, state
  union all select ns, -count(*), 'all', queue, name from forgotten group by ns, queue, name;
end
$$;

-- Forgets jobs that have ended, one by one; a job that still holds a unique key stays. Returns {outcomes, notices}.
create function remove_jobs(p_ns integer, p_now bigint, p_ids text[], p_reason text) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_id text;
  v_job all_jobs;
  v_outcomes text[] := '{}';
begin
  foreach v_id in array p_ids loop
    v_job := lock_job((resolve_id(p_ns, v_id, false)).v_seq);
    if v_job.seq is null or is_open(v_job.state) then
      v_outcomes := v_outcomes || case when v_job.seq is null then 'unknown' else 'refused' end;
    elsif exists (select from keys where job = v_job.seq and kind = 'unique' and until > v_now) then
      v_outcomes := v_outcomes || 'held'::text;
    else
      perform forget_jobs(array[v_job.seq]);
      v_outcomes := v_outcomes || 'deleted'::text;
    end if;
  end loop;
  return json_build_object('outcomes', v_outcomes, 'notices', null);
end
$$;

-- Jobs that succeeded by then and may be forgotten, earliest end first; they are locked, and so are the rows of the calls that ended them (v_calls).
-- Locked jobs are skipped; so are jobs that still hold a unique key. Index: successes_finished, jobs_pkey, ended_pkey.
create function lock_succeeded(p_ns integer, p_now bigint, p_by bigint, p_limit integer, out v_seqs bigint[], out v_calls tid[]) language plpgsql as $$
declare
  v_call record;
  v_held bigint[];
begin
  v_seqs := '{}';
  v_calls := '{}';
  for v_call in
    select c.ctid, c.seqs from successes c where c.ns = p_ns and c.finished_at <= p_by order by c.finished_at for update skip locked
  loop
    v_calls := v_calls || v_call.ctid;
    v_held := array(
      select s from unnest(v_call.seqs) as s cross join lateral (select from jobs where seq = s offset 0 for update skip locked) j
      where not exists (select from keys k where k.job = s and k.kind = 'unique' and k.until > p_now)
      limit p_limit - cardinality(v_seqs));
    -- In a separate statement, now that they are locked.
    v_seqs := v_seqs || array(
      select s from unnest(v_held) as s cross join lateral (select * from ended where seq = s offset 0) e
      where e.state = 'succeeded' and e.forget_at is null and e.finished_at <= p_by);
    exit when cardinality(v_seqs) >= p_limit;
  end loop;
end
$$;

-- Deletes the rows of calls whose successful jobs are all forgotten. The caller has locked these rows.
create function forget_calls(p_calls tid[]) returns void language plpgsql as $$
begin
  with left_over as materialized (
    select c.ctid as call, array(
      select s from unnest(c.seqs) as s cross join lateral (select * from ended where seq = s offset 0) e
      where e.state = 'succeeded' and e.forget_at is null and e.finished_at is not distinct from c.finished_at) as seqs
    from successes c where c.ctid = any (p_calls)
  ), gone as (
    delete from successes c using left_over l where c.ctid = l.call and l.seqs = '{}'
  )
  update successes c set seqs = l.seqs from left_over l where c.ctid = l.call and l.seqs <> '{}' and l.seqs <> c.seqs;
end
$$;

-- The same for jobs of another state; without a state, for those with their own retention. The row in jobs is locked first, so the query checks
-- again whether the job has ended. Index: ended_finished, ended_forget, jobs_pkey.
create function lock_forgettable(p_ns integer, p_now bigint, p_state text, p_by bigint, p_limit integer) returns bigint[] language plpgsql as $$
declare
  v_seqs bigint[];
begin
  if p_limit <= 0 then return '{}'; end if;
  if p_state is not null then
    v_seqs := array(
      select old.seq from (
        select e.seq from ended e where e.ns = p_ns and e.state = p_state and e.state <> 'succeeded' and e.finished_at <= p_by and e.forget_at is null
          and not exists (select from keys k where k.job = e.seq and k.kind = 'unique' and k.until > p_now)
        order by e.finished_at, e.seq offset 0
      ) old cross join lateral (select from jobs where seq = old.seq offset 0 for update skip locked) j limit p_limit);
  else
    v_seqs := array(
      select old.seq from (
        select e.seq from ended e where e.ns = p_ns and e.forget_at <= p_now and e.forget_at is not null
          and not exists (select from keys k where k.job = e.seq and k.kind = 'unique' and k.until > p_now)
        order by e.forget_at, e.seq offset 0
      ) old cross join lateral (select from jobs where seq = old.seq offset 0 for update skip locked) j limit p_limit);
  end if;
  return array(
    select e.seq from unnest(v_seqs) as s cross join lateral (select * from ended where seq = s offset 0) e
    where case when p_state is null then e.forget_at <= p_now else e.state = p_state and e.finished_at <= p_by and e.forget_at is null end);
end
$$;

-- Forgets terminal jobs past their retention, with their trail, aliases and keys; a job that still holds a unique key stays. Returns how many
-- there were, and whether there are more. p_kept: how long each of p_states is kept; a job's own retention takes precedence.
-- Index: successes_finished, ended_finished, ended_forget, jobs_pkey.
create function prune_jobs(
  p_ns integer, p_now bigint, p_states text[], p_kept bigint[], p_nodes_ms bigint, p_occurrences_ms bigint, p_limit integer
) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_found record;
  v_calls tid[] := '{}';
  v_seqs bigint[] := '{}';
  v_rows integer;
begin
  -- lock_succeeded finds only what was counted.
  perform fold_counts(p_ns);
  delete from nodes where ns = p_ns and seen_at <= v_now - p_nodes_ms;
  delete from occurrences where (ns, key, fire_at) in (
    select ns, key, fire_at from occurrences where ns = p_ns and planned_at <= v_now - p_occurrences_ms
    order by planned_at, key, fire_at limit p_limit for update skip locked);
  get diagnostics v_rows = row_count;
  delete from windows where ns = p_ns and started_at + per_ms <= v_now
    and ctid = any (array(select ctid from windows where ns = p_ns and started_at + per_ms <= v_now limit 10000 for update skip locked));
  -- Far longer than any claim's reply can take.
  delete from claimers where ns = p_ns and seen_at <= v_now - 30 * 24 * 3600000::bigint;
  for i in 1..cardinality(p_states) loop
    if p_states[i] = 'succeeded' then
      v_found := lock_succeeded(p_ns, v_now, v_now - p_kept[i], p_limit + 1 - cardinality(v_seqs));
      v_seqs := v_seqs || v_found.v_seqs;
      v_calls := v_found.v_calls;
      continue;
    end if;
    v_seqs := v_seqs || lock_forgettable(p_ns, v_now, p_states[i], v_now - p_kept[i], p_limit + 1 - cardinality(v_seqs));
  end loop;
  v_seqs := v_seqs || lock_forgettable(p_ns, v_now, null, null, p_limit + 1 - cardinality(v_seqs));
  if v_seqs <> '{}' then perform forget_jobs(v_seqs[1:p_limit]); end if;
  if v_calls <> '{}' then perform forget_calls(v_calls); end if;
  return json_build_array(least(cardinality(v_seqs), p_limit), cardinality(v_seqs) > p_limit or v_rows >= p_limit and exists (
    select from occurrences where ns = p_ns and planned_at <= v_now - p_occurrences_ms));
end
$$;
