-- How jobs end, and what their end brings about.

-- Takes a job off the hot table. Inputs: the row as it shall be kept, with its new state, reason, counts, error and result.
create function archive(p_job jobs, p_now bigint) returns void language plpgsql as $$
begin
  delete from jobs where seq = p_job.seq;
  insert into history (
    seq, run_at, fire_at, enqueued_at, expire_at, claimed_at, finished_at, unique_ms, ns, priority, attempts, max_crashes, slot,
    attempt, crashes, redrives, rollbacks, version, token, settled, cancel_requested, relayed, state, id, name, queue, delivery,
    settled_by, claimer, concurrency_key, rate_key, unique_key, debounce_key, after_failure, schedule, retention, tags, reason, error, progress,
    result, input
  ) values (
    p_job.seq, p_job.run_at, p_job.fire_at, p_job.enqueued_at, p_job.expire_at, p_job.claimed_at, p_now, p_job.unique_ms, p_job.ns,
    p_job.priority, p_job.attempts, p_job.max_crashes, p_job.slot, p_job.attempt, p_job.crashes, p_job.redrives, p_job.rollbacks,
    p_job.version, p_job.token, p_job.settled, p_job.cancel_requested, p_job.relayed, p_job.state, p_job.id, p_job.name,
    p_job.queue, p_job.delivery, p_job.settled_by, p_job.claimer, p_job.concurrency_key, p_job.rate_key, p_job.unique_key,
    p_job.debounce_key, p_job.after_failure, p_job.schedule, p_job.retention, p_job.tags, p_job.reason, p_job.error, p_job.progress, p_job.result,
    p_job.input
  );
end
$$;

-- Cancels a job that is waiting or blocked, without telling its children.
create function write_cancelled(p_job jobs, p_reason text, p_now bigint) returns void language plpgsql as $$
declare
  v_was text := p_job.state;
begin
  if v_was = 'blocked' then
    delete from parents where child = p_job.seq;
  else
    perform leave_line(p_job);
    perform mark_lane(p_job, p_now, true);
  end if;
  p_job.state := 'cancelled';
  p_job.reason := p_reason;
  perform archive(p_job, p_now);
end
$$;

-- Tells the end of a job to those that wait for it, and theirs to those that wait for them, without recursion. A child is locked
-- before its other parents are counted, so that of two parents that end at once the later one sees the earlier. Index: parents_pkey.
create function tell_children(n news, p_seq bigint, p_id text, p_state text, p_now bigint) returns news language plpgsql as $$
declare
  v_seqs bigint[] := array[p_seq];
  v_ids text[] := array[p_id];
  v_states text[] := array[p_state];
  v_child jobs;
  i integer := 1;
begin
  while i <= cardinality(v_seqs) loop
    n.ended := n.ended || v_ids[i];
    for v_child in
      select j.* from parents p join jobs j on j.seq = p.child where p.parent = v_seqs[i] order by p.child for no key update of j
    loop
      delete from parents where parent = v_seqs[i] and child = v_child.seq;
      if v_states[i] <> 'succeeded' and v_child.after_failure is distinct from 'run' then
        perform write_cancelled(v_child, 'its parent ' || v_ids[i] || ' is ' || v_states[i], p_now);
        v_seqs := v_seqs || v_child.seq;
        v_ids := v_ids || v_child.id;
        v_states := v_states || 'cancelled'::text;
      elsif not exists (select from parents where child = v_child.seq) then
        update jobs set state = 'waiting', shelf = shelf_of(relayed, lane, crashes, max_crashes), open_debounce = debounce_key
        where seq = v_child.seq;
        perform enter_line(v_child.seq);
        n.queues := n.queues || v_child.queue;
        perform mark_lane(v_child, v_child.run_at, false);
      end if;
    end loop;
    i := i + 1;
  end loop;
  return n;
end
$$;

-- Cancels a job that is waiting or blocked and locked by the caller.
create function cancel_idle(n news, p_job jobs, p_reason text, p_now bigint) returns news language plpgsql as $$
begin
  perform write_cancelled(p_job, p_reason, p_now);
  return tell_children(n, p_job.seq, p_job.id, 'cancelled', p_now);
end
$$;

-- Active jobs ended: whoever waited for their queue's limit, or for their key, may go.
create function note_freed(n news, p_job jobs, p_now bigint) returns news language plpgsql as $$
begin
  if p_job.relayed then return n; end if;
  if exists (select from queues where ns = p_job.ns and queue = p_job.queue and concurrency is not null) then
    n.queues := n.queues || p_job.queue;
  end if;
  if p_job.concurrency_key is not null then
    perform mark_lane(p_job, p_now, true);
    n.anywhere := true;
  end if;
  return n;
end
$$;

-- How a claim ends, as settle in state.ts decides it for a job that nobody asked to stop; what depends on the job itself is
-- decided in settle_claim, and the random comparison with memory shows that both agree.
create type ending as (
  kind text, state text, reason text, attempt_change integer, rollbacks integer, delay_ms bigint, error text, result text,
  story text, story_text text, story_error text
);

-- These jobs of the claimer's claims have ended, each counted under the sequence of its claim; claims without open jobs go. Where two end
-- jobs of one claim at once its row may stay behind, and is found by the reaper. Index: claims_pkey.
create function close_claims(p_ns integer, p_claimer text, p_sequences bigint[]) returns void language plpgsql as $$
begin
  with ended as materialized (
    select p_ns as ns, s as sequence, count(*) as times from unnest(p_sequences) as s group by s order by s
  ), gone as (
    delete from claims c using ended e where c.ns = e.ns and c.claimer = p_claimer and c.sequence = e.sequence and c.open <= e.times
  )
  update claims c set open = c.open - e.times from ended e
  where c.ns = e.ns and c.claimer = p_claimer and c.sequence = e.sequence and c.open > e.times;
end
$$;

-- Ends a claim of a job that the caller has locked. by_holder: its holder tells it. Returns where the job stands then.
create function settle_claim(inout n news, p_job jobs, p_end ending, p_by_holder boolean, p_now bigint, out v_state text, out v_reason text)
language plpgsql as $$
declare
  v_run_at bigint := p_job.run_at;
begin
  if p_end.story is not null then
    perform tell(p_job, p_now, p_end.story, p_end.story_text, p_end.story_error);
  end if;
  v_state := p_end.state;
  v_reason := p_end.reason;
  if p_end.kind = 'crash' then
    p_job.crashes := p_job.crashes + 1;
    if p_job.delivery = 'at-most-once' then
      v_state := 'lost';
    elsif p_job.crashes >= p_job.max_crashes then
      v_state := 'dead';
      v_reason := 'poison: ' || p_end.reason || ' (crash ' || p_job.crashes || ')';
    else
      v_state := 'waiting';
    end if;
  end if;
  if p_job.cancel_requested and v_state <> 'succeeded' then
    v_state := 'cancelled';
    v_reason := coalesce(p_job.reason, 'cancelled while active');
  elsif p_end.delay_ms is not null then
    v_run_at := p_now + p_end.delay_ms;
  end if;
  p_job.state := v_state;
  p_job.reason := v_reason;
  p_job.attempt := p_job.attempt + p_end.attempt_change;
  p_job.rollbacks := p_job.rollbacks + p_end.rollbacks;
  p_job.error := coalesce(p_end.error, p_job.error);
  p_job.result := p_end.result;
  p_job.run_at := v_run_at;
  if p_by_holder then
    p_job.settled := p_job.token;
    p_job.settled_by := null;
    p_job.ahead := false;
  end if;
  if v_state = 'waiting' then
    update jobs set state = v_state, reason = v_reason, attempt = p_job.attempt, crashes = p_job.crashes, rollbacks = p_job.rollbacks,
      run_at = v_run_at, error = p_job.error, result = p_job.result, lease_until = null, settled = p_job.settled,
      settled_by = p_job.settled_by, ahead = p_job.ahead, shelf = shelf_of(relayed, lane, p_job.crashes, max_crashes), held_key = null,
      expires_at = case when p_job.attempt = 0 then expire_at end
    where seq = p_job.seq;
    perform enter_line(p_job.seq);
    n.queues := n.queues || p_job.queue;
    perform mark_lane(p_job, v_run_at, false);
  else
    perform archive(p_job, p_now);
    n := tell_children(n, p_job.seq, p_job.id, v_state, p_now);
  end if;
  n := note_freed(n, p_job, p_now);
end
$$;
