-- What people and programs change in jobs from outside.

-- Changes a job that is waiting or blocked. p_change: {input, run_at, delay_ms, priority, concurrency_key, rate_key}, each left out where
-- it stays as it is. Returns {outcome, state, news}.
create function update_job(p_ns integer, p_now bigint, p_id text, p_change jsonb) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_found record := resolve_id(p_ns, p_id, false);
  v_job jobs;
  v_news news := no_news();
begin
  select * into v_job from jobs where seq = v_found.v_seq for update;
  if not found then
    -- It may have ended since it was found.
    v_found := resolve_id(p_ns, p_id, false);
    return json_build_object('outcome', case when v_found.v_seq is null then 'unknown' else 'refused' end, 'state', v_found.v_state);
  end if;
  if v_job.state = 'active' then return json_build_object('outcome', 'refused', 'state', v_job.state); end if;
  perform tell(v_job, v_now, 'updated', null, null);
  perform change_idle(v_job,
    coalesce((p_change ->> 'run_at')::bigint, v_now + (p_change ->> 'delay_ms')::bigint, v_job.run_at),
    p_change ? 'run_at' or p_change ? 'delay_ms',
    p_change ->> 'input',
    coalesce((p_change ->> 'priority')::integer, v_job.priority),
    case when p_change ? 'concurrency_key' then p_change ->> 'concurrency_key' else v_job.concurrency_key end,
    case when p_change ? 'rate_key' then p_change ->> 'rate_key' else v_job.rate_key end,
    v_now);
  if v_job.state = 'waiting' then v_news.queues := array[v_job.queue]; end if;
  return json_build_object('outcome', 'updated', 'state', v_job.state, 'news', news_to_json(v_news));
end
$$;

-- Cancels jobs one after the other. Returns {outcomes, news}.
create function cancel_jobs(p_ns integer, p_now bigint, p_ids text[], p_reason text) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_job jobs;
  v_id text;
  v_found record;
  v_news news := no_news();
  v_outcomes text[] := '{}';
begin
  foreach v_id in array p_ids loop
    v_found := resolve_id(p_ns, v_id, false);
    select * into v_job from jobs where seq = v_found.v_seq for update;
    if v_job.seq is null then
      v_outcomes := v_outcomes || case when v_found.v_seq is null then 'unknown' else 'terminal' end;
    elsif v_job.state <> 'active' then
      v_news := cancel_idle(v_news, v_job, p_reason, v_now);
      v_outcomes := v_outcomes || 'cancelled'::text;
    else
      if not v_job.cancel_requested then
        perform tell(v_job, v_now, 'cancel-requested', p_reason, null);
        update jobs set cancel_requested = true, reason = p_reason where seq = v_job.seq;
      end if;
      v_news.cancels := v_news.cancels || v_job.id;
      v_outcomes := v_outcomes || 'requested'::text;
    end if;
  end loop;
  return json_build_object('outcomes', v_outcomes, 'news', news_to_json(v_news));
end
$$;

-- Sends dead and lost jobs back to waiting, one after the other. Returns {outcomes, news}.
create function redrive_jobs(p_ns integer, p_now bigint, p_ids text[], p_reason text) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_id text;
  v_old history;
  v_job jobs;
  v_holder bigint;
  v_found record;
  v_news news := no_news();
  v_outcomes text[] := '{}';
begin
  foreach v_id in array p_ids loop
    v_found := resolve_id(p_ns, v_id, false);
    select * into v_old from history where seq = v_found.v_seq for update;
    if v_old.seq is null or v_old.state not in ('dead', 'lost') then
      v_outcomes := v_outcomes || case when v_found.v_seq is null then 'unknown' else 'refused' end;
      continue;
    end if;
    if v_old.unique_key is not null then
      v_holder := lock_key(p_ns, 'unique', v_old.unique_key, v_now);
      if v_holder <> v_old.seq then
        v_outcomes := v_outcomes || 'held'::text;
        continue;
      end if;
      update keys set job = v_old.seq, until = v_old.enqueued_at + v_old.unique_ms
      where ns = p_ns and kind = 'unique' and key = v_old.unique_key;
    end if;
    delete from history where seq = v_old.seq;
    insert into jobs (
      seq, run_at, fire_at, enqueued_at, claimed_at, unique_ms, ns, priority, attempts, max_crashes, slot, redrives, rollbacks, version,
      token, settled, cancel_requested, relayed, state, id, name, queue, delivery, settled_by, claimer, concurrency_key, rate_key,
      unique_key, debounce_key, after_failure, schedule, retention, tags, error, progress, result, input, attempt, lane, shelf
    ) values (
      v_old.seq, v_now, v_old.fire_at, v_old.enqueued_at, v_old.claimed_at, v_old.unique_ms, p_ns, v_old.priority, v_old.attempts,
      v_old.max_crashes, v_old.slot, v_old.redrives + 1, v_old.rollbacks, v_old.version, v_old.token, v_old.settled,
      v_old.cancel_requested, v_old.relayed, 'waiting', v_old.id, v_old.name, v_old.queue, v_old.delivery, v_old.settled_by,
      v_old.claimer, v_old.concurrency_key, v_old.rate_key, v_old.unique_key, v_old.debounce_key, v_old.after_failure, v_old.schedule,
      v_old.retention, v_old.tags, v_old.error, v_old.progress, v_old.result, v_old.input, v_old.attempt,
      lane_of(v_old.concurrency_key, v_old.rate_key), shelf_of(v_old.relayed, lane_of(v_old.concurrency_key, v_old.rate_key), 0, v_old.max_crashes)
    ) returning * into v_job;
    perform tell(v_job, v_now, 'redriven', p_reason, null);
    update jobs set attempt = 0 where seq = v_job.seq;
    perform enter_line(v_job.seq);
    perform mark_lane(v_job, v_now, false);
    v_news.queues := v_news.queues || v_job.queue;
    v_outcomes := v_outcomes || 'redriven'::text;
  end loop;
  return json_build_object('outcomes', v_outcomes, 'news', news_to_json(v_news));
end
$$;

-- With jobs that have ended, and that the caller has locked, go their trail, aliases and keys.
create function forget_jobs(p_seqs bigint[]) returns void language plpgsql as $$
begin
  delete from trail where job = any (p_seqs);
  delete from aliases where job = any (p_seqs);
  delete from keys where job = any (p_seqs);
  delete from history where seq = any (p_seqs);
end
$$;

-- Forgets jobs that have ended, one after the other; who still holds a unique key stays. Returns {outcomes, news}.
create function remove_jobs(p_ns integer, p_now bigint, p_ids text[], p_reason text) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_id text;
  v_seq bigint;
  v_found record;
  v_outcomes text[] := '{}';
begin
  foreach v_id in array p_ids loop
    v_found := resolve_id(p_ns, v_id, false);
    select seq into v_seq from history where seq = v_found.v_seq for update;
    if v_seq is null then
      v_outcomes := v_outcomes || case when v_found.v_seq is null then 'unknown' else 'refused' end;
    elsif exists (select from keys where job = v_seq and kind = 'unique' and until > v_now) then
      v_outcomes := v_outcomes || 'held'::text;
    else
      perform forget_jobs(array[v_seq]);
      v_outcomes := v_outcomes || 'deleted'::text;
    end if;
  end loop;
  return json_build_object('outcomes', v_outcomes, 'news', null);
end
$$;

-- Forgets terminal jobs past their retention, with their trail, aliases and keys; who still holds a unique key stays. Returns how many
-- there were, and whether there are more. p_kept: how long each of p_states is kept; one with a retention of its own goes by that. Index: history_finished, history_forget.
create function prune_jobs(
  p_ns integer, p_now bigint, p_states text[], p_kept bigint[], p_nodes_ms bigint, p_occurrences_ms bigint, p_limit integer
) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_seqs bigint[] := '{}';
  v_rows integer;
begin
  delete from nodes where ns = p_ns and seen_at <= v_now - p_nodes_ms;
  delete from occurrences where (ns, key, fire_at) in (
    select ns, key, fire_at from occurrences where ns = p_ns and planned_at <= v_now - p_occurrences_ms
    order by planned_at, key, fire_at limit p_limit for update skip locked);
  get diagnostics v_rows = row_count;
  delete from windows where ns = p_ns and started_at + per_ms <= v_now
    and ctid = any (array(select ctid from windows where ns = p_ns and started_at + per_ms <= v_now limit 10000 for update skip locked));
  -- Far longer than any claim's reply is on its way.
  delete from claimers where ns = p_ns and seen_at <= v_now - 30 * 24 * 3600000::bigint;
  for i in 1..cardinality(p_states) loop
    v_seqs := v_seqs || array(
      select h.seq from history h
      where h.ns = p_ns and h.state = p_states[i] and h.finished_at <= v_now - p_kept[i] and h.forget_at is null
        and not exists (select from keys k where k.job = h.seq and k.kind = 'unique' and k.until > v_now)
      order by h.finished_at, h.seq limit p_limit + 1 - cardinality(v_seqs) for update skip locked);
  end loop;
  v_seqs := v_seqs || array(
    select h.seq from history h
    where h.ns = p_ns and h.forget_at <= v_now and h.forget_at is not null
      and not exists (select from keys k where k.job = h.seq and k.kind = 'unique' and k.until > v_now)
    order by h.forget_at, h.seq limit p_limit + 1 - cardinality(v_seqs) for update skip locked);
  if v_seqs <> '{}' then perform forget_jobs(v_seqs[1:p_limit]); end if;
  return json_build_array(least(cardinality(v_seqs), p_limit), cardinality(v_seqs) > p_limit or v_rows >= p_limit and exists (
    select from occurrences where ns = p_ns and planned_at <= v_now - p_occurrences_ms));
end
$$;
