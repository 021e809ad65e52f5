-- The settings under which the verbs run, whatever the server's or the session's are. A session keeps the plans of functions as long as it
-- lasts, and one made for an empty table must serve a full one: so only index plans are allowed. Lock waits end before
-- the caller gives up.
do $$
declare
  v_verb regprocedure;
begin
  for v_verb in
    select oid from pg_proc where pronamespace = current_schema()::regnamespace and proname in (
      'active_in_queue', 'enqueue_loose', 'enqueue_bound', 'seqs_of', 'finish_succeeded', 'finish_any', 'claim_jobs', 'extend_claims', 'report_progress', 'reap_jobs',
      'update_job', 'cancel_jobs', 'redrive_jobs', 'remove_jobs', 'prune_jobs', 'put_schedule', 'fire_schedules', 'acquire_partitions', 'partition_due',
      'checkpoint_partition', 'begin_effect', 'succeed_effect')
  loop
    execute format('alter function %s set search_path from current', v_verb);
    execute format('alter function %s set jit = off', v_verb);
    execute format('alter function %s set enable_seqscan = off', v_verb);
    execute format('alter function %s set enable_bitmapscan = off', v_verb);
    execute format('alter function %s set enable_mergejoin = off', v_verb);
    execute format('alter function %s set plan_cache_mode = force_generic_plan', v_verb);
    execute format('alter function %s set lock_timeout = ''8s''', v_verb);
  end loop;
  -- These read in index order. For an empty table any index by namespace looks as good, with a quick sort of what it finds.
  for v_verb in
    select oid from pg_proc where pronamespace = current_schema()::regnamespace
      and proname in ('find_known', 'acquire_partitions', 'partition_due')
  loop
    execute format('alter function %s set enable_sort = off', v_verb);
  end loop;
end
$$;
