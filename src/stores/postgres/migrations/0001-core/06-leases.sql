-- Claims while they last, and the end of those that nobody holds any more.

-- Renews leases of claims (none twice). Returns {renewed: [[place, whether its job was asked to stop]], locked: [place]}; the others are stale.
-- A row that another transaction has locked is passed over: one of them must not hold up the leases of all the others.
-- Promise: changes no index, so that the updates are HOT; waits for no lock. Index: jobs_id.
create function extend_claims(p_ns integer, p_now bigint, p_claimer text, p_lease_ms bigint, p_ids text[], p_tokens integer[])
returns json language plpgsql as $$
declare
  v_until bigint := now_ms(p_now) + p_lease_ms;
  v_renewed json;
  v_places bigint[];
  v_locked json := '[]';
begin
  with asked as materialized (
    select p_ns as ns, a.* from unnest(p_ids, p_tokens) with ordinality as a (id, token, place) order by a.id
  ), mine as materialized (
    select a.place, j.seq from asked a cross join lateral (
      select seq from jobs where ns = a.ns and id = a.id and token = a.token and state is not distinct from 'active' and claimer = p_claimer
        and relayed is not distinct from false
      offset 0 for no key update skip locked
    ) j
  ), renewed as (
    update jobs j set lease_until = v_until from mine m where j.seq = m.seq returning m.place, j.cancel_requested
  )
  select coalesce(json_agg(json_build_array(place - 1, cancel_requested)), '[]'), array_agg(place) into v_renewed, v_places from renewed;
  if cardinality(v_places) is distinct from cardinality(p_ids) then
    select coalesce(json_agg(a.place - 1), '[]') into v_locked from unnest(p_ids, p_tokens) with ordinality as a (id, token, place)
    where a.place <> all (coalesce(v_places, '{}')) and exists (
      select from jobs where ns = p_ns and id = a.id and token = a.token and state is not distinct from 'active' and claimer = p_claimer
        and relayed is not distinct from false
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
  v_job jobs;
  v_line text;
begin
  for v_report in
    select * from json_to_recordset(p_reports) as r (id text, token integer, progress text, lines text[])
  loop
    select * into v_job from jobs where ns = p_ns and id = v_report.id for no key update;
    continue when not found or v_job.state <> 'active' or v_job.token <> v_report.token or v_job.claimer <> p_claimer or v_job.relayed;
    if v_report.progress is not null then update jobs set progress = v_report.progress where seq = v_job.seq; end if;
    foreach v_line in array coalesce(v_report.lines, '{}') loop
      perform tell(v_job, v_now, 'log', v_line, null);
    end loop;
  end loop;
end
$$;

-- Ends claims whose lease ran out, and jobs that expired. What somebody else holds just now is passed over, and is asked again inside
-- its lock. Returns {reaped: [[id, name, queue, state, reason]], more, news}. Index: jobs_active, jobs_expiring.
create function reap_jobs(p_ns integer, p_now bigint, p_limit integer, p_until bigint, p_crash json) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_silent_by bigint := least(now_ms(p_now), p_until);
  v_crash ending := json_populate_record(null::ending, p_crash);
  v_job jobs;
  v_done record;
  v_news news := no_news();
  v_reaped json[] := '{}';
begin
  v_news := settle_doubts(v_news, p_ns, v_now);
  for v_job in
    select * from jobs where ns = p_ns and state = 'active' and not relayed and lease_until <= v_silent_by
    order by lease_until, seq limit p_limit for update skip locked
  loop
    v_done := settle_claim(v_news, v_job, v_crash, false, v_now);
    v_news := v_done.n;
    v_reaped := v_reaped || json_build_array(v_job.id, v_job.name, v_job.queue, v_done.v_state, v_done.v_reason);
  end loop;
  while cardinality(v_reaped) < p_limit loop
    select * into v_job from jobs
    where ns = p_ns and expire_at is not null and attempt = 0 and state in ('waiting', 'blocked') and expire_at <= v_now
    order by expire_at, seq limit 1 for update skip locked;
    exit when not found;
    v_news := cancel_idle(v_news, v_job, 'expired', v_now);
    v_reaped := v_reaped || json_build_array(v_job.id, v_job.name, v_job.queue, 'cancelled', 'expired');
  end loop;
  return json_build_object('mark', v_now, 'reaped', v_reaped, 'news', news_to_json(v_news), 'more', (cardinality(v_reaped) >= p_limit or v_silent_by < v_now) and (
    exists (select from jobs where ns = p_ns and state = 'active' and not relayed and lease_until <= v_now)
    or exists (select from jobs
      where ns = p_ns and expire_at is not null and attempt = 0 and state in ('waiting', 'blocked') and expire_at <= v_now)
  ));
end
$$;

-- Looks once at children that were enqueued in a caller's own transaction, now that it is committed: a parent may have ended meanwhile.
create function settle_doubts(n news, p_ns integer, p_now bigint) returns news language plpgsql as $$
declare
  v_child bigint;
  v_parent bigint;
  v_end record;
begin
  for v_child in select child from doubts where ns = p_ns order by child limit 1000 for update skip locked loop
    for v_parent in select parent from parents where child = v_child order by position loop
      v_end := resolve_seq(v_parent, true);
      continue when v_end.v_state in ('blocked', 'waiting', 'active');
      n := tell_children(n, v_parent, coalesce(v_end.v_id, ''), coalesce(v_end.v_state, 'succeeded'), p_now);
    end loop;
    delete from doubts where ns = p_ns and child = v_child;
  end loop;
  return n;
end
$$;
