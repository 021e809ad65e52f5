-- How holders end their claims.

-- The numbers of jobs, null if there is none, in the order of their ids. Index: jobs_id.
create function seqs_of(p_ns integer, p_ids text[]) returns bigint[] language plpgsql as $$
begin
  return array(
    select j.seq from unnest(p_ids) with ordinality as a (id, place)
    left join lateral (select seq from jobs where ns = p_ns and id = a.id offset 0) j on true order by a.place);
end
$$;

-- Ends claims with success, as almost every job does. Inputs: the numbers of the jobs (no duplicates), tokens, results (null: none
-- has one). p_first_slot and p_end_slot: the relay's jobs of these slots; null: all other jobs.
-- Promise: only claims that still belong to the claimer are ended. Only rows of active are locked, in enqueue order.
-- Returns null when all were written, and only their end is to be published; else {missed: [[place, outcome, state]], notices}.
-- Index: active_pkey, claims_pkey.
create function finish_succeeded(
  p_ns integer, p_now bigint, p_claimer text, p_first_slot integer, p_end_slot integer, p_seqs bigint[], p_tokens integer[], p_results text[]
) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_done bigint;
  v_places bigint[];
  v_seqs bigint[] := p_seqs;
  v_sequences bigint[];
  v_keyed boolean;
  v_queue text;
  v_name text;
  v_alike boolean;
  v_limited boolean;
  v_awaited boolean;
  v_parent record;
  v_missed json;
  v_notices notices := no_notices();
begin
  with asked as materialized (
    select * from unnest(p_seqs, p_tokens, p_results) with ordinality as a (seq, token, result, place) order by a.seq
  ), gone as (
    delete from active x using asked a
    where x.seq = a.seq and x.token = a.token and x.claimer = p_claimer
      and case when p_first_slot is null then not x.relayed else x.relayed and x.slot >= p_first_slot and x.slot < p_end_slot end
    returning a.place, a.result, x.seq, x.claimed_at, x.claim_sequence, x.attempt, x.token, x.concurrency_key, x.retention, x.queue, x.name
  ), kept as (
    insert into ended (seq, finished_at, claimed_at, forget_at, ns, attempt, token, settled, state, claimer, result)
    select seq, v_now, claimed_at, v_now + retention[1], p_ns, attempt, token, token, 'succeeded', p_claimer, result from gone
  )
  select count(*), array_agg(place), array_agg(claim_sequence), bool_or(concurrency_key is not null), min(queue), min(name),
    min(queue) = max(queue) and min(name) = max(name)
  into v_done, v_places, v_sequences, v_keyed, v_queue, v_name, v_alike from gone;
  if v_done <> cardinality(p_seqs) then v_seqs := array(select p_seqs[place] from unnest(v_places) as place); end if;
  if v_alike then
    insert into fresh_successes (ns, jobs, finished_at, queue, name, seqs) values (p_ns, v_done, v_now, v_queue, v_name, v_seqs);
  elsif v_done > 0 then
    insert into fresh_successes (ns, jobs, finished_at, queue, name, seqs)
    select p_ns, count(*), v_now, j.queue, j.name, array_agg(s) from unnest(v_seqs) as s cross join lateral (
      select queue, name from jobs where seq = s offset 0) j
    group by j.queue, j.name;
  end if;
  if p_first_slot is null and v_done > 0 then
    perform close_claims(p_ns, p_claimer, v_sequences);
    if v_keyed then
      v_notices.anywhere := true;
      insert into arrivals (ns, lane, queue, name, at, changed)
      select distinct p_ns, lane, queue, name, v_now, true from unnest(v_seqs) as s cross join lateral (
        select lane, queue, name, concurrency_key from jobs where seq = s offset 0) j
      where j.concurrency_key is not null and j.lane is not null;
    end if;
  end if;
  select exists (select from queues where ns = p_ns and concurrency is not null), exists (select from parents) into v_limited, v_awaited;
  if v_limited and p_first_slot is null then
    v_notices.queues := array(
      select distinct j.queue from unnest(v_seqs) as s cross join lateral (select queue from jobs where seq = s offset 0) j
      join queues q on q.ns = p_ns and q.queue = j.queue and q.concurrency is not null);
  end if;
  if v_awaited then
    for v_parent in
      select j.seq, j.id from unnest(v_seqs) as s cross join lateral (
        select seq, id from jobs where seq = s and exists (select from parents where parent = s) offset 0) j order by j.seq
    loop
      v_notices := tell_children(v_notices, v_parent.seq, v_parent.id, 'succeeded', v_now);
    end loop;
  end if;
  if v_done <> cardinality(p_seqs) then
    select json_agg(json_build_array(a.place - 1, u.v_outcome, u.v_state)) into v_missed
    from unnest(p_seqs, p_tokens) with ordinality as a (seq, token, place)
    cross join lateral explain_unheld(p_claimer, a.seq, a.token) u
    where v_places is null or a.place <> all (v_places);
  end if;
  if v_missed is null and v_notices = no_notices() then return null; end if;
  return json_build_object('missed', v_missed, 'notices', notices_to_json(v_notices));
end
$$;

-- What happened to a claim that no longer belongs to the claimer.
create function explain_unheld(p_claimer text, p_seq bigint, p_token integer, out v_outcome text, out v_state text)
language plpgsql as $$
declare
  v_settled integer;
  v_by text;
begin
  select state, settled, settled_by into v_state, v_settled, v_by from all_jobs where seq = p_seq;
  v_outcome := case when v_settled > 0 and v_settled = p_token and v_by = p_claimer then 'repeated' else 'stale' end;
end
$$;

-- Ends claims in any way, one after the other. p_endings: as the type says. Where the policy refuses one of them, such as the retry of an
-- at-most-once job, the call is refused as a whole.
-- Returns {results: [[outcome, state]], notices}. Index: jobs_id.
create function finish_any(
  p_ns integer, p_now bigint, p_claimer text, p_first_slot integer, p_end_slot integer, p_ids text[], p_tokens integer[], p_endings json
) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_seqs bigint[] := seqs_of(p_ns, p_ids);
  v_asked record;
  v_job all_jobs;
  v_end ending;
  v_done record;
  v_notices notices := no_notices();
  v_results json[] := '{}';
  v_endings json[] := array(select json_array_elements(p_endings));
  v_sequences bigint[] := '{}';
begin
  -- Locked in enqueue order, as everywhere; and refused before anything is written, even after another end of the same claim.
  for v_asked in
    select a.seq, array_agg(a.token) as tokens, array_agg(a.ending ->> 'kind') as kinds
    from unnest(v_seqs, p_tokens, v_endings) as a (seq, token, ending) where a.seq is not null group by a.seq order by a.seq
  loop
    v_job := lock_job(v_asked.seq);
    if v_job.state = 'active' and v_job.claimer = p_claimer and is_mine(v_job, p_first_slot, p_end_slot) and exists (
      select from unnest(v_asked.tokens, v_asked.kinds) as a (token, kind) where a.token = v_job.token and is_refused(v_job, a.kind)
    ) then
      raise exception 'the policy does not let this job end so: %', v_job.id using errcode = 'ES002';
    end if;
  end loop;
  for i in 1..cardinality(p_ids) loop
    v_job := job_of(v_seqs[i]);
    if v_job.state = 'active' and v_job.token = p_tokens[i] and v_job.claimer = p_claimer and is_mine(v_job, p_first_slot, p_end_slot) then
      v_end := json_populate_record(null::ending, v_endings[i]);
      v_done := settle_claim(v_notices, v_job, v_end, true, v_now);
      v_notices := v_done.n;
      v_results := v_results || json_build_array('written', v_done.v_state);
      if not v_job.relayed then v_sequences := v_sequences || v_job.claim_sequence; end if;
    else
      select json_build_array(v_outcome, v_state) into v_done from explain_unheld(p_claimer, v_seqs[i], p_tokens[i]);
      v_results := v_results || v_done.json_build_array;
    end if;
  end loop;
  if v_sequences <> '{}' then perform close_claims(p_ns, p_claimer, v_sequences); end if;
  return json_build_object('results', v_results, 'notices', notices_to_json(v_notices));
end
$$;

-- Whether the policy refuses such an end of a held job.
create function is_refused(p_job all_jobs, p_kind text) returns boolean language plpgsql immutable as $$
begin
  return (decide(p_kind, '', p_job.cancel_requested, p_job.reason, p_job.delivery, p_job.crashes, p_job.max_crashes)).state is null;
end
$$;

-- Whether the caller may end a job: the relay's jobs of these slots, or all others.
create function is_mine(p_job all_jobs, p_first_slot integer, p_end_slot integer) returns boolean language sql immutable as $$
  select case when p_first_slot is null then not p_job.relayed
    else p_job.relayed and p_job.slot >= p_first_slot and p_job.slot < p_end_slot end
$$;
