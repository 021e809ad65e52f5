-- For people who operate the jobs.

-- Adds a person's line to the trails of jobs, by their ids or aliases: a log line without a claimer.
create function note_jobs(p_ns integer, p_given bigint, p_ids text[], p_text text) returns json language plpgsql
set search_path from current set enable_seqscan = off set plan_cache_mode = force_generic_plan set lock_timeout = '8s' as $$
declare
  v_now bigint := now_ms(p_given);
  v_id text;
  v_seq bigint;
  v_attempt integer;
  v_token integer;
begin
  foreach v_id in array p_ids loop
    v_seq := coalesce((select seq from jobs where ns = p_ns and id = v_id), (select job from aliases where ns = p_ns and id = v_id));
    select attempt, token into v_attempt, v_token from all_jobs where seq = v_seq;
    continue when not found;
    insert into trail (job, at, kind, attempt, token, claimer, text, error)
    values (v_seq, v_now, 'log', v_attempt, v_token, null, p_text, null);
    delete from trail where job = v_seq and entry <= (
      select entry from trail where job = v_seq order by entry desc limit 1 offset 200
    );
  end loop;
  return 'null';
end
$$;
