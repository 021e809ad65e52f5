-- The claim.

-- Whether this claim is new to the store: 'new', 'repeated' (its answer is given again, less what has ended since) or 'stale'. Locks the
-- claimer's row, so that a repetition waits for a first try that is still under way. Index: claimers_pkey.
create function check_sequence(a ask) returns text language plpgsql as $$
declare
  v_last bigint;
begin
  select sequence into v_last from claimers where ns = a.ns and claimer = a.claimer for update;
  if not found then
    insert into claimers (ns, claimer, sequence, seen_at) values (a.ns, a.claimer, a.sequence, a.now) on conflict do nothing;
    if found then return 'new'; end if;
    select sequence into v_last from claimers where ns = a.ns and claimer = a.claimer for update;
  end if;
  if a.sequence < v_last then return 'stale'; end if;
  if a.sequence = v_last then return 'repeated'; end if;
  update claimers set sequence = a.sequence, seen_at = a.now where ns = a.ns and claimer = a.claimer;
  return 'new';
end
$$;

-- What is still active under a claim, with lease left; in columns, as hold_jobs has them. Index: jobs_active.
create function still_held(a ask) returns json language plpgsql as $$
begin
  return (
    select case when count(*) > 0 then json_build_array(array_agg(id), array_agg(name), array_agg(queue), array_agg(delivery),
      array_agg(priority), json_agg(case when tags <> '{}' then tags end), array_agg(run_at), array_agg(fire_at), array_agg(enqueued_at),
      array_agg(attempt), array_agg(attempts), array_agg(crashes), array_agg(max_crashes), array_agg(redrives), array_agg(token),
      array_agg(schedule), array_agg(input), array_agg(cancel_requested), array_agg(version)) end
    from (
      select * from jobs j
      where j.ns = a.ns and j.state = 'active' and not j.relayed and j.claimer = a.claimer and j.claim_sequence = a.sequence
        and j.lease_until > a.now
      order by -priority, run_at, seq) held
  );
end
$$;

-- Due jobs that must run alone, for this claimer, by turn. Index: jobs_fragile.
create function fragile_jobs(a ask) returns setof jobs language plpgsql as $$
begin
  return query
    select j.* from jobs j
    where j.shelf = 'fragile' and j.ns = a.ns and j.name = any (a.names) and (a.queues is null or j.queue = any (a.queues)) and j.run_at <= a.now
      and (j.expire_at is null or j.expire_at > a.now or j.attempt > 0)
      and not exists (select from queues q where q.ns = a.ns and q.queue = j.queue and q.paused)
    order by -j.priority, j.run_at, j.seq limit 100;
end
$$;

-- Takes due, waiting jobs that are not relayed, as ClaimParams in store.ts says.
-- Promise: no job goes to two claimers; limits hold exactly. Locks, in this order: the claimer's row, limited queues, lanes, rate keys'
-- windows, jobs (passing over what others hold). Plain jobs in queues without limits lock nothing but themselves.
-- Returns {outcome, jobs, now, nextAt, fragile}. A claim that took nothing is not waited for on the way to the disk: should the server lose
-- it, no call of that claimer is on its way any more.
create function claim_jobs(a ask) returns json language plpgsql as $$
declare
  v_kind text;
  v_lines waiting_line[];
  v_takes integer[];
  v_mixed boolean;
  v_limited boolean;
  v_rows tid[];
  v_jobs json;
  v_next bigint;
  l limits;
begin
  a.now := now_ms(a.clock);
  v_kind := check_sequence(a);
  if v_kind = 'stale' then
    return json_build_object('outcome', 'stale', 'jobs', null, 'now', a.now, 'nextAt', null, 'fragile', false);
  end if;
  -- Each of these is rare, and without any of them the way is short.
  select exists (select from gates where ns = a.ns) or exists (select from arrivals where ns = a.ns)
      or (select true from jobs where shelf = 'fragile' and ns = a.ns order by queue, name, run_at limit 1) is not null,
    exists (select from queues where ns = a.ns and not paused and (concurrency is not null or rate_limit is not null))
  into v_mixed, v_limited;
  if v_mixed or v_kind = 'repeated' then return claim_mixed(a, v_kind = 'repeated'); end if;
  v_lines := find_lines(a);
  if v_limited then
    l := read_limits(a, array(select queue from unnest(v_lines)));
    a.now := now_ms(a.clock);
  else
    l := no_limits(a);
  end if;
  if cardinality(v_lines) = 1 then
    v_takes := array[room_in(a, l, v_lines[1].queue)];
  elsif v_lines <> '{}' then
    v_takes := share_out(a, v_lines, array(select room_in(a, l, queue) from unnest(v_lines)));
  end if;
  v_rows := lock_from_lines(a, v_lines, array(select greatest(least(take, a.most), 0) from unnest(v_takes) as take));
  if v_limited then perform write_windows(a, v_rows); end if;
  v_jobs := hold_jobs(a, v_rows);
  if v_limited then l := read_limits(a, l.q_names); end if;
  if a.quiet and v_rows = '{}' then perform set_config('synchronous_commit', 'off', true); end if;
  if a.most > 0 then v_next := lines_next_at(a, l, v_lines); end if;
  return json_build_object('outcome', 'claimed', 'jobs', v_jobs, 'now', a.now, 'nextAt', nullif(v_next, never()), 'fragile', false);
end
$$;
