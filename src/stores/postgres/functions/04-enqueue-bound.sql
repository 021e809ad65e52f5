-- Jobs with parents, or with a key that other jobs may hold.

-- Moves the first waiting, never claimed job with the key; returns it, or null if there is none. The caller holds the key's row.
-- Index: untried_debounce.
create function debounce_job(p_ns integer, p_new new_job, p_now bigint) returns all_jobs language plpgsql as $$
declare
  v_seq bigint;
  v_job all_jobs;
  v_run_at bigint;
begin
  loop
    select seq into v_seq from untried
    where ns = p_ns and debounce_key = p_new.debounce_key and debounce_key is not null order by seq limit 1;
    if not found then return null; end if;
    v_job := lock_job(v_seq);
    exit when v_job.state = 'waiting';
    -- It was claimed while this call waited, and its claim removed the entry, unless another program wrote here. There may be another job.
    delete from untried where seq = v_seq;
  end loop;
  v_run_at := least(p_now + p_new.wait_ms, v_job.enqueued_at + p_new.max_ms);
  perform change_idle(v_job, v_run_at, true, p_new.input, v_job.priority, p_new.concurrency_key, p_new.rate_key, p_now);
  return v_job;
end
$$;

-- Writes an edit of a waiting or blocked job that the caller has locked. p_retimed: a time was given, so the nominal time moves
-- to it, except for occurrences, and an expiry moves with it.
create function change_idle(
  p_job all_jobs, p_run_at bigint, p_retimed boolean, p_input text, p_priority integer, p_concurrency_key text, p_rate_key text, p_now bigint
) returns void language plpgsql as $$
declare
  v_job all_jobs;
begin
  perform leave_line(p_job);
  update jobs set run_at = p_run_at, fire_at = case when p_retimed and schedule is null then p_run_at else fire_at end,
    expire_at = expire_at + p_run_at - run_at, priority = p_priority, concurrency_key = p_concurrency_key, rate_key = p_rate_key,
    lane = lane_of(p_concurrency_key, p_rate_key),
    shelf = case when not blocked then shelf_of(relayed, lane_of(p_concurrency_key, p_rate_key), crashes, max_crashes) end,
    input = coalesce(p_input, input), version = risen(version)
  where seq = p_job.seq;
  perform enter_line(p_job.seq);
  if p_job.state <> 'waiting' then return; end if;
  v_job := job_of(p_job.seq);
  perform mark_lane(p_job, p_now, true);
  perform mark_lane(v_job, p_run_at, false);
end
$$;

-- Finds the parents; a missing one is returned as v_missing. p_open: the transaction is the caller's own, and holds no parent.
create function find_parents(
  p_ns integer, p_after text[], p_open boolean, out v_missing text, out v_waits_for bigint[], out v_failed_id text, out v_failed_state text
) language plpgsql as $$
declare
  v_parent record;
  v_asked text;
begin
  v_waits_for := '{}';
  foreach v_asked in array coalesce(p_after, '{}') loop
    v_parent := resolve_id(p_ns, v_asked, not p_open);
    if v_parent.v_seq is null then
      v_missing := v_asked;
      return;
    end if;
    if is_open(v_parent.v_state) then
      if v_parent.v_seq <> all (v_waits_for) then v_waits_for := v_waits_for || v_parent.v_seq; end if;
    elsif v_parent.v_state <> 'succeeded' and v_failed_id is null then
      v_failed_id := v_parent.v_id;
      v_failed_state := v_parent.v_state;
    end if;
  end loop;
end
$$;

-- Enqueues one job of any kind, checking in the order of the contract: existing, refused, absorbed, debounced, added.
create function enqueue_one(
  inout n notices, p_ns integer, p_now bigint, p_new new_job, p_open boolean, out v_outcome text, out v_id text, out v_missing text
) language plpgsql as $$
declare
  v_known record;
  v_parents record;
  v_target bigint;
  v_job all_jobs;
  v_run_at bigint := coalesce(p_now + p_new.wait_ms, p_new.run_at, p_now + p_new.delay_ms);
begin
  v_id := p_new.id;
  v_known := resolve_id(p_ns, p_new.id, false);
  if v_known.v_seq is null then
    v_parents := find_parents(p_ns, p_new.after, p_open);
    if v_parents.v_missing is not null then
      v_outcome := 'refused';
      v_missing := v_parents.v_missing;
      return;
    end if;
    if p_new.unique_key is not null then v_target := lock_key(p_ns, 'unique', p_new.unique_key, p_now); end if;
    v_outcome := 'absorbed';
    if v_target is null and p_new.debounce_key is not null then
      perform lock_key(p_ns, 'debounce', p_new.debounce_key, p_now);
      v_job := debounce_job(p_ns, p_new, p_now);
      v_target := v_job.seq;
      v_outcome := 'debounced';
      if v_target is not null then n.queues := n.queues || v_job.queue; end if;
    end if;
    if v_target is not null then
      if absorb(p_ns, p_new, v_target, p_now) then
        v_id := (resolve_seq(v_target, false)).v_id;
        return;
      end if;
    else
      v_job := insert_job(p_ns, p_new, v_parents.v_waits_for <> '{}', v_run_at, p_now);
      if v_job.seq is not null then
        v_outcome := 'added';
        n := bind_job(n, v_job, p_new, v_parents.v_waits_for, p_open, p_now);
        if is_orphan(p_new.after_failure, v_parents.v_failed_state) then
          n := cancel_idle(n, v_job, orphan_reason(v_parents.v_failed_id, v_parents.v_failed_state), p_now);
        end if;
        return;
      end if;
    end if;
    v_known := resolve_id(p_ns, p_new.id, false);
  end if;
  v_outcome := 'existing';
  v_id := v_known.v_id;
end
$$;

-- Writes what ties a job that was just added to others: its keys, its parents, its lane.
create function bind_job(n notices, p_job all_jobs, p_new new_job, p_waits_for bigint[], p_open boolean, p_now bigint) returns notices language plpgsql as $$
begin
  if p_new.unique_key is not null then
    update keys set job = p_job.seq, until = p_now + p_new.unique_ms where ns = p_job.ns and kind = 'unique' and key = p_new.unique_key;
  end if;
  if p_new.debounce_key is not null then
    update keys set job = p_job.seq where ns = p_job.ns and kind = 'debounce' and key = p_new.debounce_key;
  end if;
  if p_job.state = 'blocked' then
    insert into parents (parent, child, position)
    select parent, p_job.seq, place from unnest(p_waits_for) with ordinality as t (parent, place);
    if p_open then insert into doubts (ns, child) values (p_job.ns, p_job.seq); end if;
  else
    n.queues := n.queues || p_job.queue;
    perform mark_lane(p_job, p_job.run_at, false);
  end if;
  return n;
end
$$;

-- Enqueues jobs of any kind in order. Returns {results: [[outcome, id, missing parent]], notices}.
create function enqueue_bound(p_ns integer, p_now bigint, p_jobs json, p_open boolean) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_new new_job;
  v_one record;
  v_notices notices := no_notices();
  v_results json[] := '{}';
begin
  for v_new in select * from json_populate_recordset(null::new_job, p_jobs) loop
    v_one := enqueue_one(v_notices, p_ns, v_now, v_new, p_open);
    v_notices := v_one.n;
    v_results := v_results || json_build_array(v_one.v_outcome, v_one.v_id, v_one.v_missing);
  end loop;
  return json_build_object('results', v_results, 'notices', notices_to_json(v_notices));
end
$$;
