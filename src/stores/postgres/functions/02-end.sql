-- How jobs end, and what follows from that.

-- Writes the end of a job that the caller has taken from its place. Inputs: the job as it must be kept, with its new state, reason and result.
create function end_job(p_job all_jobs, p_now bigint) returns void language plpgsql as $$
begin
  insert into ended (seq, finished_at, claimed_at, forget_at, ns, attempt, token, settled, state, claimer, reason, result)
  values (
    p_job.seq, p_now, p_job.claimed_at, forget_at(p_job.retention, p_job.state, p_now), p_job.ns, p_job.attempt, p_job.token, p_job.settled,
    p_job.state, p_job.claimer, p_job.reason, p_job.result
  );
  if p_job.state = 'succeeded' then
    insert into fresh_successes (ns, jobs, finished_at, queue, name, seqs)
    values (p_job.ns, 1, p_now, p_job.queue, p_job.name, array[p_job.seq]);
  else
    insert into count_changes (ns, jobs, kind, queue, name) values (p_job.ns, 1, p_job.state, p_job.queue, p_job.name);
  end if;
end
$$;

-- When a job that ends now is forgotten, by its own retention; null if it has none.
create function forget_at(p_retention bigint[], p_state text, p_now bigint) returns bigint language sql immutable as $$
  select p_now + p_retention[case p_state when 'succeeded' then 1 when 'cancelled' then 2 when 'dead' then 3 when 'lost' then 4 end]
$$;

-- Cancels a job that is waiting or blocked, without notifying its children.
create function write_cancelled(p_job all_jobs, p_reason text, p_now bigint) returns void language plpgsql as $$
begin
  perform leave_line(p_job);
  if p_job.state = 'blocked' then
    delete from parents where child = p_job.seq;
  else
    perform mark_lane(p_job, p_now, true);
  end if;
  if p_job.state = 'blocked' or p_job.shelf is not null then
    update jobs set blocked = false, shelf = null where seq = p_job.seq;
  end if;
  p_job.state := 'cancelled';
  p_job.reason := p_reason;
  perform end_job(p_job, p_now);
end
$$;

-- Passes the end of a job on to its children, and theirs to their children, without recursion. A child is locked
-- before its other parents are counted, so if two parents end at once, the later one sees the earlier. Index: parents_pkey.
create function tell_children(n notices, p_seq bigint, p_id text, p_state text, p_now bigint) returns notices language plpgsql as $$
declare
  v_seqs bigint[] := array[p_seq];
  v_ids text[] := array[p_id];
  v_states text[] := array[p_state];
  v_seq bigint;
  v_child all_jobs;
  i integer := 1;
begin
  while i <= cardinality(v_seqs) loop
    n.ended := n.ended || v_ids[i];
    for v_seq in
      select j.seq from parents p join jobs j on j.seq = p.child where p.parent = v_seqs[i] order by p.child for no key update of j
    loop
      delete from parents where parent = v_seqs[i] and child = v_seq;
      v_child := job_of(v_seq);
      -- Another program has written to it.
      continue when v_child.state is distinct from 'blocked';
      if is_orphan(v_child.after_failure, v_states[i]) then
        perform write_cancelled(v_child, orphan_reason(v_ids[i], v_states[i]), p_now);
        v_seqs := v_seqs || v_child.seq;
        v_ids := v_ids || v_child.id;
        v_states := v_states || 'cancelled'::text;
      elsif not exists (select from parents where child = v_child.seq) then
        update jobs set blocked = false, shelf = shelf_of(relayed, lane, crashes, max_crashes) where seq = v_child.seq;
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

-- Cancels a waiting or blocked job that the caller has locked.
create function cancel_idle(n notices, p_job all_jobs, p_reason text, p_now bigint) returns notices language plpgsql as $$
begin
  perform write_cancelled(p_job, p_reason, p_now);
  return tell_children(n, p_job.seq, p_job.id, 'cancelled', p_now);
end
$$;

-- Active jobs ended: jobs held back by their queue's limit, or by their key, may go.
create function note_freed(n notices, p_job all_jobs, p_now bigint) returns notices language plpgsql as $$
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

-- How a claim ended, as its holder says; what follows from it is decided by decide.
create type ending as (kind text, reason text, delay_ms bigint, error text, result text);

-- These jobs of the claimer's claims have ended, each counted under the sequence of its claim; claims without open jobs are deleted. If two
-- calls end jobs of one claim at once, its row may stay behind; the reaper finds it. Index: claims_pkey.
create function close_claims(p_ns integer, p_claimer text, p_sequences bigint[]) returns void language plpgsql as $$
begin
  -- Jobs that end together were mostly claimed together.
  if p_sequences[1] = all (p_sequences) then
    delete from claims where ns = p_ns and claimer = p_claimer and sequence = p_sequences[1] and open <= cardinality(p_sequences);
    if not found then
      update claims set open = open - cardinality(p_sequences)
      where ns = p_ns and claimer = p_claimer and sequence = p_sequences[1] and open > cardinality(p_sequences);
    end if;
    return;
  end if;
  with ended as materialized (
    select p_ns as ns, s as sequence, count(*) as times from unnest(p_sequences) as s group by s order by s
  ), gone as (
    delete from claims c using ended e where c.ns = e.ns and c.claimer = p_claimer and c.sequence = e.sequence and c.open <= e.times
  )
  update claims c set open = c.open - e.times from ended e
  where c.ns = e.ns and c.claimer = p_claimer and c.sequence = e.sequence and c.open > e.times;
end
$$;

-- Ends a claim of a job that the caller has locked. by_holder: the claim's holder reports it. Returns the job's new state. This is the last
-- chance to keep who settled an earlier claim. A success writes nothing to the job's row.
create function settle_claim(inout n notices, p_job all_jobs, p_end ending, p_by_holder boolean, p_now bigint, out v_state text, out v_reason text)
language plpgsql as $$
declare
  v_rule decision :=
    decide(p_end.kind, p_end.reason, p_job.cancel_requested, p_job.reason, p_job.delivery, p_job.crashes, p_job.max_crashes);
begin
  if v_rule.story is not null then
    perform tell(
      p_job, p_now, v_rule.story, case when v_rule.tells_reason then p_end.reason end, case when v_rule.tells_error then p_end.error end);
  end if;
  v_state := v_rule.state;
  v_reason := v_rule.reason;
  if v_rule.is_delayed and p_end.delay_ms is not null then p_job.run_at := p_now + p_end.delay_ms; end if;
  p_job.state := v_state;
  p_job.reason := v_reason;
  p_job.attempt := p_job.attempt + v_rule.attempt_change;
  p_job.crashes := least(p_job.crashes + v_rule.crash_change, 1000000000);
  p_job.result := case when v_rule.keeps_result then p_end.result end;
  if p_by_holder then p_job.settled := p_job.token; end if;
  delete from active where seq = p_job.seq;
  if v_state <> 'succeeded' then
    update jobs set run_at = p_job.run_at, attempt = p_job.attempt, crashes = p_job.crashes, rollbacks = least(rollbacks + v_rule.rollbacks, 1000000000),
      error = coalesce(case when v_rule.keeps_error then p_end.error end, error), reason = v_reason, token = p_job.token, claimer = p_job.claimer, claimed_at = p_job.claimed_at,
      ahead = p_job.ahead and not p_by_holder, settled = p_job.settled,
      settled_by = case when p_by_holder or settled = 0 then null else coalesce(settled_by, claimer) end,
      shelf = case when v_state = 'waiting' then shelf_of(relayed, lane, p_job.crashes, max_crashes) end
    where seq = p_job.seq;
  end if;
  if v_state = 'waiting' then
    perform enter_line(p_job.seq);
    n.queues := n.queues || p_job.queue;
    perform mark_lane(p_job, p_job.run_at, false);
  else
    perform end_job(p_job, p_now);
    n := tell_children(n, p_job.seq, p_job.id, v_state, p_now);
  end if;
  n := note_freed(n, p_job, p_now);
end
$$;
