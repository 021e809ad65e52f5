-- Claims in progress, and the end of abandoned ones.

-- Renews leases of claims (no duplicates). Returns {renewed: [[place, whether its job was asked to stop]], locked: [place]}; the others are stale.
-- A row that another transaction has locked is skipped: it must not hold up the leases of all the others.
-- Promise: changes no index, so the updates can be HOT; waits for no lock, and takes only those of active.
-- Index: jobs_id, active_pkey.
create function extend_claims(p_ns integer, p_now bigint, p_claimer text, p_lease_ms bigint, p_ids text[], p_tokens integer[])
returns json language plpgsql as $$
declare
  v_until bigint := now_ms(p_now) + p_lease_ms;
  v_renewed json;
  v_places bigint[];
  v_shorter bigint[];
  v_locked json := '[]';
begin
  with asked as materialized (
    select p_ns as ns, a.* from unnest(p_ids, p_tokens) with ordinality as a (id, token, place) order by a.id
  ), mine as materialized (
    select a.place, j.cancel_requested, x.* from asked a cross join lateral (
      select seq, cancel_requested from jobs where ns = a.ns and id = a.id offset 0
    ) j cross join lateral (
      select seq, claim_sequence, lease_until from active where seq = j.seq and token = a.token and claimer = p_claimer and not relayed
      offset 0 for no key update skip locked
    ) x
  ), renewed as (
    update active x set lease_until = v_until, ahead = false from mine m where x.seq = m.seq
    returning m.place, m.cancel_requested, case when m.lease_until > v_until then m.claim_sequence end as shorter
  )
  select coalesce(json_agg(json_build_array(place - 1, cancel_requested)), '[]'), array_agg(place),
    array_agg(distinct shorter) filter (where shorter is not null)
  into v_renewed, v_places, v_shorter from renewed;
  if v_shorter is not null then
    update claims set until = least(until, v_until) where ns = p_ns and claimer = p_claimer and sequence = any (v_shorter);
  end if;
  if cardinality(v_places) is distinct from cardinality(p_ids) then
    select coalesce(json_agg(a.place - 1), '[]') into v_locked from unnest(p_ids, p_tokens) with ordinality as a (id, token, place)
    where a.place <> all (coalesce(v_places, '{}')) and exists (
      select from (select seq from jobs where ns = p_ns and id = a.id offset 0) j cross join lateral (
        select from active where seq = j.seq and token = a.token and claimer = p_claimer and not relayed offset 0) x
    );
  end if;
  return json_build_object('renewed', v_renewed, 'locked', v_locked);
end
$$;

-- Keeps progress and log lines of held jobs; those of stale claims are dropped. p_reports: [{id, token, progress, lines}].
create function report_progress(p_ns integer, p_now bigint, p_claimer text, p_reports json) returns void language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_report record;
  v_job all_jobs;
  v_line text;
begin
  for v_report in
    select * from json_to_recordset(p_reports) as r (id text, token integer, progress text, lines text[])
  loop
    select * into v_job from all_jobs where seq = (select seq from jobs where ns = p_ns and id = v_report.id for no key update);
    continue when not found or v_job.state <> 'active' or v_job.token <> v_report.token or v_job.claimer <> p_claimer or v_job.relayed;
    if v_report.progress is not null then update jobs set progress = v_report.progress where seq = v_job.seq; end if;
    foreach v_line in array coalesce(v_report.lines, '{}') loop
      perform tell(v_job, v_now, 'log', v_line, null);
    end loop;
  end loop;
end
$$;

-- Jobs whose lease had run out by then, the earliest first, without those that others hold; they are locked.
-- Index: claims_until, active_pkey, jobs_pkey.
create function lock_silent(p_ns integer, p_by bigint, p_limit integer) returns bigint[] language plpgsql as $$
begin
  return array(
    select silent.seq from (
      select x.seq from claims c cross join lateral unnest(c.seqs) as s cross join lateral (
        select seq, lease_until from active where seq = s and claimer = c.claimer and claim_sequence = c.sequence and lease_until <= p_by offset 0) x
      where c.ns = p_ns and c.until <= p_by order by x.lease_until, x.seq
    ) silent cross join lateral (
      select from jobs where seq = silent.seq offset 0 for update skip locked
    ) job cross join lateral (
      select from active where seq = silent.seq and lease_until <= p_by offset 0 for update skip locked
    ) held
    limit p_limit
  );
end
$$;

-- Updates the rows of claims that are due: what is still active under them, and until when. Index: claims_until, active_pkey.
create function refresh_claims(p_ns integer, p_by bigint) returns void language plpgsql as $$
declare
  v_claim record;
  v_seqs bigint[];
  v_until bigint;
begin
  for v_claim in select * from claims where ns = p_ns and until <= p_by order by until limit 1000 for update skip locked loop
    select array_agg(x.seq), min(x.lease_until) into v_seqs, v_until from unnest(v_claim.seqs) as s cross join lateral (
      select seq, lease_until from active where seq = s and claimer = v_claim.claimer and claim_sequence = v_claim.sequence offset 0) x;
    if v_seqs is null then
      delete from claims where ns = p_ns and claimer = v_claim.claimer and sequence = v_claim.sequence;
    else
      update claims set seqs = v_seqs, open = cardinality(v_seqs), until = v_until
      where ns = p_ns and claimer = v_claim.claimer and sequence = v_claim.sequence;
    end if;
  end loop;
end
$$;

-- Adds changes to the counts. Two concurrent calls take different rows, and update the counts in the same order.
create function fold_counts(p_ns integer) returns void language plpgsql as $$
begin
  with gone as (
    delete from count_changes
    where ctid = any (array(select ctid from count_changes where ns = p_ns limit 50000 for update skip locked)) returning queue, name, kind, jobs
  ), succeeded as (
    delete from fresh_successes
    where ctid = any (array(select ctid from fresh_successes where ns = p_ns limit 50000 for update skip locked)) returning *
  ), moved as (
    insert into successes (ns, finished_at, seqs) select ns, finished_at, seqs from succeeded
  )
  insert into counts as c (ns, jobs, kind, queue, name)
  select p_ns, least(greatest(sum(jobs), -9007199254740991), 9007199254740991), kind, queue, name from (
    select queue, name, kind, jobs from gone union all select queue, name, 'succeeded', jobs from succeeded) change group by queue, name, kind order by queue, name, kind
  on conflict (ns, queue, name, kind) do update set jobs = least(greatest(c.jobs + excluded.jobs, -9007199254740991), 9007199254740991);
end
$$;

-- Ends claims whose lease ran out, and jobs that expired. Rows that others hold are skipped, and the condition is checked again under
-- the lock. p_silence and p_unstarted: how a claim ends whose holder fell silent, and one that was taken ahead.
-- Returns {reaped: [[id, name, queue, state, reason]], more, notices}. Index: claims_until, untried_expiring.
create function reap_jobs(p_ns integer, p_now bigint, p_limit integer, p_until bigint, p_silence json, p_unstarted json) returns json
language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_silent_by bigint := least(now_ms(p_now), p_until);
  v_silence ending := json_populate_record(null::ending, p_silence);
  v_unstarted ending := json_populate_record(null::ending, p_unstarted);
  v_seq bigint;
  v_job all_jobs;
  v_done record;
  v_notices notices := no_notices();
  v_reaped json[] := '{}';
begin
  v_notices := settle_doubts(v_notices, p_ns, v_now);
  foreach v_seq in array lock_silent(p_ns, v_silent_by, p_limit) loop
    v_job := job_of(v_seq);
    v_done := settle_claim(v_notices, v_job, case when v_job.ahead then v_unstarted else v_silence end, false, v_now);
    v_notices := v_done.n;
    v_reaped := v_reaped || json_build_array(v_job.id, v_job.name, v_job.queue, v_done.v_state, v_done.v_reason);
  end loop;
  if cardinality(v_reaped) < p_limit then
    -- Twice as many as wanted: others may hold some. Entries of jobs that are no longer idle were written by another program.
    for v_seq in
      select seq from untried where ns = p_ns and expire_at <= v_now and expire_at is not null order by expire_at, seq limit 2 * p_limit
    loop
      exit when cardinality(v_reaped) >= p_limit;
      v_job := try_lock_idle(v_seq);
      if v_job.seq is null then
        if not exists (select from all_jobs where seq = v_seq and is_idle(state)) then
          delete from untried where ctid = (select ctid from untried where seq = v_seq for update skip locked);
        end if;
        continue;
      end if;
      if v_job.attempt > 0 or v_job.expire_at is null or v_job.expire_at > v_now then
        update untried set expire_at = case when v_job.attempt = 0 then v_job.expire_at end where seq = v_seq;
        continue;
      end if;
      v_notices := cancel_idle(v_notices, v_job, expired_reason(), v_now);
      v_reaped := v_reaped || json_build_array(v_job.id, v_job.name, v_job.queue, 'cancelled', expired_reason());
    end loop;
  end if;
  perform refresh_claims(p_ns, v_silent_by);
  perform fold_counts(p_ns);
  return json_build_object('mark', v_now, 'reaped', v_reaped, 'notices', notices_to_json(v_notices), 'more', (cardinality(v_reaped) >= p_limit or v_silent_by < v_now) and (
    exists (
      select from claims c cross join lateral unnest(c.seqs) as s cross join lateral (
        select from active where seq = s and claimer = c.claimer and claim_sequence = c.sequence and lease_until <= v_now offset 0) x
      where c.ns = p_ns and c.until <= v_now)
    or exists (select from untried where ns = p_ns and expire_at <= v_now and expire_at is not null)
  ));
end
$$;

-- Checks once the children that were enqueued in a caller's own transaction, now that it is committed: a parent may have ended by then.
create function settle_doubts(n notices, p_ns integer, p_now bigint) returns notices language plpgsql as $$
declare
  v_child bigint;
  v_parent bigint;
  v_end record;
begin
  for v_child in select child from doubts where ns = p_ns order by child limit 1000 for update skip locked loop
    for v_parent in select parent from parents where child = v_child order by position loop
      v_end := resolve_seq(v_parent, true);
      continue when is_open(v_end.v_state);
      n := tell_children(n, v_parent, coalesce(v_end.v_id, ''), coalesce(v_end.v_state, 'succeeded'), p_now);
    end loop;
    delete from doubts where ns = p_ns and child = v_child;
  end loop;
  return n;
end
$$;
