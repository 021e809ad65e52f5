-- How claims end by their holder's word.

-- Ends claims with success, which is what almost every job ends with. Inputs: ids (none twice), tokens and results (null: none has one).
-- p_first_slot and p_end_slot: the relay's jobs of these slots; null: the others.
-- Promise: only claims that are still the claimer's are ended; rows are locked in the order of their ids.
-- Returns null when all were written, and nothing is to be told but their end; else {missed: [[place, outcome, state]], news}.
-- Index: jobs_id, claims_pkey.
create function finish_succeeded(
  p_ns integer, p_now bigint, p_claimer text, p_first_slot integer, p_end_slot integer, p_ids text[], p_tokens integer[], p_results text[]
) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_seqs bigint[];
  v_ids text[];
  v_queues text[];
  v_sequences bigint[];
  v_keyed boolean;
  v_awaited boolean;
  v_missed json;
  v_news news := no_news();
begin
  with asked as materialized (
    select p_ns as ns, a.* from unnest(p_ids, p_tokens, p_results) as a (id, token, result) order by a.id
  ), gone as (
    delete from jobs j using asked a
    where j.ns = a.ns and j.id = a.id and j.token = a.token and j.state is not distinct from 'active' and j.claimer = p_claimer
      and case when p_first_slot is null then not j.relayed else j.relayed and j.slot >= p_first_slot and j.slot < p_end_slot end
    returning j.*, a.result as new_result
  ), moved as (
    insert into history (
      seq, run_at, fire_at, enqueued_at, expire_at, claimed_at, finished_at, unique_ms, ns, priority, attempts, max_crashes, slot,
      attempt, crashes, redrives, rollbacks, version, token, settled, cancel_requested, relayed, state, id, name, queue, delivery,
      claimer, concurrency_key, rate_key, unique_key, debounce_key, after_failure, schedule, retention, tags, error, progress, result, input
    )
    select seq, run_at, fire_at, enqueued_at, expire_at, claimed_at, v_now, unique_ms, ns, priority, attempts, max_crashes, slot,
      attempt, crashes, redrives, rollbacks, version, token, token, cancel_requested, relayed, 'succeeded', id, name, queue, delivery,
      claimer, concurrency_key, rate_key, unique_key, debounce_key, after_failure, schedule, retention, tags, error, progress, new_result, input
    from gone
  ), freed as (
    insert into arrivals (ns, lane, queue, name, at, changed)
    select distinct p_ns, lane, queue, name, v_now, true from gone where concurrency_key is not null and not relayed
  )
  select array_agg(seq), array_agg(id), array_agg(distinct queue) filter (where not relayed),
    array_agg(claim_sequence) filter (where not relayed), bool_or(concurrency_key is not null and not relayed)
  into v_seqs, v_ids, v_queues, v_sequences, v_keyed from gone;
  if v_sequences is not null then perform close_claims(p_ns, p_claimer, v_sequences); end if;
  v_news.anywhere := coalesce(v_keyed, false);
  select array(select queue from queues where ns = p_ns and concurrency is not null and queue = any (v_queues)),
    exists (select from parents where parent = any (v_seqs))
  into v_news.queues, v_awaited;
  if v_awaited then
    for i in 1..cardinality(v_seqs) loop
      v_news := tell_children(v_news, v_seqs[i], v_ids[i], 'succeeded', v_now);
    end loop;
  end if;
  if cardinality(v_seqs) is distinct from cardinality(p_ids) then
    select json_agg(json_build_array(a.place - 1, u.v_outcome, u.v_state)) into v_missed
    from unnest(p_ids, p_tokens) with ordinality as a (id, token, place)
    cross join lateral explain_unheld(p_ns, p_claimer, a.id, a.token) u
    where v_ids is null or a.id <> all (v_ids);
  end if;
  if v_missed is null and v_news = no_news() then return null; end if;
  return json_build_object('missed', v_missed, 'news', news_to_json(v_news));
end
$$;

-- What became of a claim that is not the claimer's any more.
create function explain_unheld(p_ns integer, p_claimer text, p_id text, p_token integer, out v_outcome text, out v_state text)
language plpgsql as $$
declare
  v_settled integer;
  v_by text;
begin
  for i in 1..2 loop
    select state, settled, coalesce(settled_by, claimer) into v_state, v_settled, v_by from jobs where ns = p_ns and id = p_id;
    exit when found;
    select state, settled, coalesce(settled_by, claimer) into v_state, v_settled, v_by from ended_job(p_ns, p_id);
    exit when v_state is not null;
  end loop;
  v_outcome := case when v_settled > 0 and v_settled = p_token and v_by = p_claimer then 'repeated' else 'stale' end;
end
$$;

-- Ends claims in any way, one after the other. p_endings: as the type says. A retry, a snooze and a rollback send a job that was
-- dispatched back to be dispatched again, which an at-most-once job must not be: the call is refused as a whole.
-- Returns {results: [[outcome, state]], news}. Index: jobs_id.
create function finish_any(
  p_ns integer, p_now bigint, p_claimer text, p_first_slot integer, p_end_slot integer, p_ids text[], p_tokens integer[], p_endings json
) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_job jobs;
  v_end ending;
  v_done record;
  v_news news := no_news();
  v_results json[] := '{}';
  v_endings json[] := array(select json_array_elements(p_endings));
  v_sequences bigint[] := '{}';
begin
  -- Locked in the order of their ids, as everywhere; and refused before anything is written, also behind another end of the same claim.
  for v_job in
    select j.* from (select distinct id from unnest(p_ids) as id order by id) a
    cross join lateral (select * from jobs where ns = p_ns and id = a.id offset 0 for update) j
  loop
    if v_job.delivery = 'at-most-once' and v_job.state = 'active' and v_job.claimer = p_claimer and is_mine(v_job, p_first_slot, p_end_slot) and exists (
      select from unnest(p_ids, p_tokens, v_endings) as a (id, token, ending)
      where a.id = v_job.id and a.token = v_job.token and a.ending ->> 'kind' in ('retry', 'snooze', 'rollback')
    ) then
      raise exception 'an at-most-once job cannot be sent back once it was dispatched: %', v_job.id using errcode = 'ES002';
    end if;
  end loop;
  for i in 1..cardinality(p_ids) loop
    select * into v_job from jobs where ns = p_ns and id = p_ids[i];
    if v_job.state = 'active' and v_job.token = p_tokens[i] and v_job.claimer = p_claimer and is_mine(v_job, p_first_slot, p_end_slot) then
      v_end := json_populate_record(null::ending, v_endings[i]);
      v_done := settle_claim(v_news, v_job, v_end, true, v_now);
      v_news := v_done.n;
      v_results := v_results || json_build_array('written', v_done.v_state);
      if not v_job.relayed then v_sequences := v_sequences || v_job.claim_sequence; end if;
    else
      select json_build_array(v_outcome, v_state) into v_done from explain_unheld(p_ns, p_claimer, p_ids[i], p_tokens[i]);
      v_results := v_results || v_done.json_build_array;
    end if;
  end loop;
  if v_sequences <> '{}' then perform close_claims(p_ns, p_claimer, v_sequences); end if;
  return json_build_object('results', v_results, 'news', news_to_json(v_news));
end
$$;

-- Whether a job is for the caller to end: the relay's, of these slots, or everybody else's.
create function is_mine(p_job jobs, p_first_slot integer, p_end_slot integer) returns boolean language sql immutable as $$
  select case when p_first_slot is null then not p_job.relayed
    else p_job.relayed and p_job.slot >= p_first_slot and p_job.slot < p_end_slot end
$$;
