-- Schedules and their ledger.

create function schedule_json(s schedules) returns json language sql stable as $$
  select json_build_array(s.key, s.spec, s.job, s.paused, s.next_at, s.version, s.fired, s.last_job_id, s.created_at, s.updated_at)
$$;

-- A row for the ledger, with the job that it plans, in the form that enqueue_bound takes.
create type new_occurrence as (fire_at bigint, until bigint, count integer, fate text, reason text, job json);

-- Writes a row of the ledger and adds its job. An existing row stays, unless it was skipped and p_replace is set.
-- v_added: whether it was written; v_job_id: the job that the row refers to.
create function plan_occurrence(
  inout n notices, p_ns integer, p_now bigint, p_key text, p_node text, p_new new_occurrence, p_replace boolean, out v_added boolean, out v_job_id text
) language plpgsql as $$
declare
  v_job record;
begin
  insert into occurrences as o (ns, key, fire_at, until, count, fate, reason, planned_at, node)
  values (p_ns, p_key, p_new.fire_at, p_new.until, p_new.count, p_new.fate, p_new.reason, p_now, p_node)
  on conflict (ns, key, fire_at) do update set until = excluded.until, count = excluded.count, fate = excluded.fate,
    reason = excluded.reason, planned_at = excluded.planned_at, node = excluded.node
  where p_replace and o.fate = 'skipped';
  v_added := found;
  if not v_added or p_new.job is null then return; end if;
  v_job := enqueue_one(n, p_ns, p_now, json_populate_record(null::new_job, p_new.job), false);
  n := v_job.n;
  if v_job.v_outcome = 'refused' then return; end if;
  v_job_id := v_job.v_id;
  update occurrences set job_id = v_job_id where ns = p_ns and key = p_key and fire_at = p_new.fire_at;
end
$$;

-- Writes a schedule, with rows for the ledger, if it still has the version and next time that the edit is based on (null: there is none yet). The row
-- of versions, which outlives the schedule, serialises edits. Returns {outcome, schedule}.
create function put_schedule(
  p_ns integer, p_now bigint, p_key text, p_spec text, p_job text, p_paused boolean, p_next_at bigint, p_if_version integer,
  p_if_next_at bigint, p_node text, p_skipped json
) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_old schedules;
  v_new schedules;
  v_row new_occurrence;
begin
  insert into schedule_versions (ns, key, version) values (p_ns, p_key, 0) on conflict do nothing;
  perform from schedule_versions where ns = p_ns and key = p_key for update;
  select * into v_old from schedules where ns = p_ns and key = p_key for update;
  if v_old.version is distinct from p_if_version or v_old.version is not null and v_old.next_at is distinct from p_if_next_at then
    return json_build_object('outcome', 'conflict', 'schedule', case when v_old.key is not null then schedule_json(v_old) end);
  end if;
  insert into schedules (ns, key, spec, job, paused, next_at, version, created_at, updated_at)
  select p_ns, p_key, p_spec, p_job, p_paused, p_next_at, risen(version), v_now, v_now from schedule_versions where ns = p_ns and key = p_key
  on conflict (ns, key) do update set spec = excluded.spec, job = excluded.job, paused = excluded.paused, next_at = excluded.next_at,
    version = excluded.version, updated_at = excluded.updated_at
  returning * into v_new;
  update schedule_versions set version = v_new.version where ns = p_ns and key = p_key;
  for v_row in select * from json_populate_recordset(null::new_occurrence, p_skipped) loop
    perform plan_occurrence(no_notices(), p_ns, v_now, p_key, p_node, v_row, false);
  end loop;
  return json_build_object('outcome', 'put', 'schedule', schedule_json(v_new));
end
$$;

-- Plans occurrences of schedules, each independently: inserts them and their jobs and advances the schedule, if it is still as the planner saw
-- it. p_fires: [{key, version, next_at, occurrences, advance_to, replace_skipped}].
-- Returns {fires: for each a list of whether its occurrences were added, or null when it is stale; notices}.
create function fire_schedules(p_ns integer, p_now bigint, p_node text, p_fires json) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_fire record;
  v_row new_occurrence;
  v_one record;
  v_planned integer;
  v_last text;
  v_added boolean[];
  v_notices notices := no_notices();
  v_results json[] := '{}';
begin
  for v_fire in
    select * from json_to_recordset(p_fires) as f (
      key text, version integer, next_at bigint, occurrences json, advance_to bigint, replace_skipped boolean)
  loop
    perform from schedules
    where ns = p_ns and key = v_fire.key and version = v_fire.version and next_at is not distinct from v_fire.next_at
      and (not paused or v_fire.replace_skipped)
    for update;
    if not found then
      v_results := v_results || 'null'::json;
      continue;
    end if;
    v_planned := 0;
    v_last := null;
    v_added := '{}';
    for v_row in select * from json_populate_recordset(null::new_occurrence, v_fire.occurrences) loop
      v_one := plan_occurrence(v_notices, p_ns, v_now, v_fire.key, p_node, v_row, v_fire.replace_skipped);
      v_notices := v_one.n;
      v_added := v_added || v_one.v_added;
      continue when not v_one.v_added or v_row.fate <> 'planned';
      v_planned := v_planned + 1;
      v_last := v_one.v_job_id;
    end loop;
    update schedules set next_at = v_fire.advance_to, fired = least(fired + v_planned, 9007199254740991), last_job_id = coalesce(v_last, last_job_id)
    where ns = p_ns and key = v_fire.key;
    v_results := v_results || to_json(v_added);
  end loop;
  return json_build_object('fires', v_results, 'notices', notices_to_json(v_notices));
end
$$;
