-- The claim.

-- Whether this claim is new to the store: 'new', 'repeated' (the same answer again, without jobs that have ended since) or 'stale'. Locks the
-- claimer's row, so a repetition waits for a first attempt that is still in progress. Index: claimers_pkey.
create function check_sequence(a ask) returns text language plpgsql as $$
declare
  v_last bigint;
begin
  insert into claimers as c (ns, claimer, sequence, seen_at) values (a.ns, a.claimer, a.sequence, a.now)
  on conflict (ns, claimer) do update set sequence = excluded.sequence, seen_at = excluded.seen_at where c.sequence < excluded.sequence;
  if found then return 'new'; end if;
  select sequence into v_last from claimers where ns = a.ns and claimer = a.claimer;
  return case when a.sequence = v_last then 'repeated' else 'stale' end;
end
$$;

-- What is still active under a claim, with lease left; in columns, like those of hold_jobs.
-- Index: claims_pkey, active_pkey, jobs_pkey.
create function still_held(a ask) returns json language plpgsql as $$
begin
  return (
    select told_jobs(array_agg(j.seq order by -j.priority, j.run_at, j.seq)) from claims c cross join lateral unnest(c.seqs) as s
    cross join lateral (
      select seq, priority, run_at from all_jobs where seq = s and state = 'active' and claimer = a.claimer and claim_sequence = a.sequence
        and lease_until > a.now offset 0) j
    where c.ns = a.ns and c.claimer = a.claimer and c.sequence = a.sequence
    having count(*) > 0
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

-- Takes due, waiting jobs that are not relayed, as ClaimParams in src/store/claims.ts says.
-- Promise: no job goes to two claimers; limits hold exactly. Locks, in this order: the claimer's row, limited queues, lanes, rate keys'
-- windows, then rows of jobs on shelves and turns (skipping locked ones). Plain jobs in queues without limits lock only their turns.
-- Returns {outcome, jobs, now, nextAt, fragile}. A claim that took nothing does not wait for the disk: if the server loses
-- it, no call of that claimer is still in flight.
create function claim_jobs(a ask) returns json language plpgsql as $$
declare
  v_kind text;
  v_found record;
  v_line waiting_line;
  v_queues text[];
  v_takes integer[];
  v_taken record;
  v_jobs json;
  v_next bigint;
  l limits;
begin
  a.now := now_ms(a.clock);
  v_kind := check_sequence(a);
  if v_kind = 'stale' then
    return json_build_object('outcome', 'stale', 'jobs', null, 'now', a.now, 'nextAt', null, 'fragile', false);
  end if;
  v_found := survey(a);
  if v_found.v_mixed or v_kind = 'repeated' then return claim_mixed(a, v_found.v_lines, v_kind = 'repeated'); end if;
  if v_found.v_limited then
    l := read_limits(a, array(select queue from unnest(v_found.v_lines)));
    a.now := now_ms(a.clock);
  else
    l := no_limits(a);
  end if;
  if v_found.v_lines <> '{}' and a.most + a.ahead > 0 then
    if cardinality(v_found.v_lines) = 1 then
      v_line := (v_found.v_lines)[1];
      v_queues := array[v_line.queue];
      v_taken := take_line(a, v_line, greatest(least(room_in(a, l, v_line.queue), a.most + a.ahead), 0), v_line.queue = any (l.q_names));
    else
      v_takes := share_out(a, v_found.v_lines, array(select greatest(room_in(a, l, queue), 0) from unnest(v_found.v_lines)));
      v_queues := array(select distinct queue from unnest(v_found.v_lines));
      v_taken := take_turns(a, v_found.v_lines, v_takes, l.q_names);
    end if;
    if v_taken.v_seqs <> '{}' then
      if v_found.v_limited then perform write_windows(a, v_taken.v_seqs); end if;
      v_jobs := hold_jobs(a, v_taken.v_seqs, '{}', v_queues, v_line, a.most);
    end if;
    if not v_found.v_limited and more_behind(a, v_found.v_lines, v_taken.v_last_at, v_taken.v_last) then
      v_next := a.now;
    else
      if v_found.v_limited then l := read_limits(a, l.q_names); end if;
      v_next := lines_next_at(a, l, v_found.v_lines);
    end if;
  end if;
  if a.quiet and v_jobs is null then perform set_config('synchronous_commit', 'off', true); end if;
  return json_build_object('outcome', 'claimed', 'jobs', v_jobs, 'now', a.now, 'nextAt', nullif(v_next, never()), 'fragile', false);
end
$$;
