-- The claim when there are lanes, or jobs that must run alone, beside the plain ones.

-- Claims the first job that must run alone and may go, or nothing. Its key's lane is locked; if another call holds the lane, the job waits.
create function claim_fragile(a ask, l limits) returns bigint[] language plpgsql as $$
declare
  v_job jobs;
  v_limits limits;
begin
  for v_job in select * from fragile_jobs(a) loop
    if v_job.concurrency_key is not null then
      insert into lanes (ns, lane) values (a.ns, v_job.lane) on conflict do nothing;
      perform from lanes where ns = a.ns and lane = v_job.lane for update skip locked;
      continue when not found;
    end if;
    v_limits := read_keys(a, l, array[v_job.concurrency_key], array[v_job.rate_key], true);
    continue when queue_opens_at(a, l, v_job.queue) > a.now
      or keys_open_at(a, v_limits, v_job.name, v_job.concurrency_key, v_job.rate_key) > a.now;
    perform from jobs where seq = v_job.seq and shelf is not distinct from 'fragile' for no key update skip locked;
    if found then return array[v_job.seq]; end if;
  end loop;
  return '{}';
end
$$;

-- When the first of the fragile jobs may go, if time alone decides; null if there is none.
create function fragile_opens_at(a ask, l limits) returns bigint language plpgsql as $$
begin
  return (
    select min(greatest(queue_opens_at(a, l, j.queue), keys_open_at(a, k.limits, j.name, j.concurrency_key, j.rate_key)))
    from fragile_jobs(a) j cross join lateral (select read_keys(a, l, array[j.concurrency_key], array[j.rate_key], false) as limits) k
  );
end
$$;

-- What lanes offer: the due jobs of each from the front, up to the first that is not for this claimer, behind which the lane waits. No more
-- than the key's limit has room for, and one that shows whether more are waiting. Index: active_key, jobs_lane.
create function lane_offers(a ask, p_lanes text[]) returns candidate[] language plpgsql as $$
declare
  v_highest integer := case when array_position(a.concurrency, null) is null then (select max(c) from unnest(a.concurrency) as c) end;
  -- At least one: it shows that the lane is ready.
  v_most integer[] := array(
    select case when v_highest is null or lane not like 'concurrency %' then greatest(a.most, 1) else
      least(greatest(a.most, 1), 1 + greatest(0, v_highest - (
        select count(*)::integer from (
          select from active x where x.ns = a.ns and x.concurrency_key = substr(lane, 13) and x.concurrency_key is not null and not x.relayed
          limit v_highest
        ) active))) end
    from unnest(p_lanes) as lane);
  v_paused text[] := array(select queue from queues where ns = a.ns and paused);
begin
  return array(
    select job from (
      select job, bool_or(job.name <> all (a.names) or a.queues is not null and job.queue <> all (a.queues) or job.queue = any (v_paused))
        over (partition by job.lane order by job.rank, job.run_at, job.seq) as is_held_back
      from lane_fronts(a, p_lanes, v_most) job
    ) offered where not is_held_back);
end
$$;

-- Chooses among lines and lanes in turn order. Returns how many of each line, and which jobs of lanes, with the remaining limits.
create function choose_jobs(a ask, inout l limits, p_lines waiting_line[], p_offers candidate[], out v_takes integer[], out v_seqs bigint[])
language plpgsql as $$
declare
  v_job record;
  v_waiting text[] := '{}';
  v_taken integer := 0;
begin
  v_takes := array_fill(0, array[cardinality(p_lines)]);
  v_seqs := '{}';
  for v_job in
    select o.rank, o.run_at, o.seq, o.queue, o.name, o.lane, o.concurrency_key, o.rate_key, null::bigint as place from unnest(p_offers) o
    union all
    select p.rank, j.run_at, j.seq, p.queue, p.name, null, null, null, p.place
    from unnest(p_lines) with ordinality as p (queue, name, rank, place) cross join lateral (
      select run_at, seq from turns
      where ns = a.ns and queue = p.queue and name = p.name and rank = p.rank and run_at <= a.now
        and (expire_at is null or expire_at > a.now)
      order by run_at, seq limit a.most) j
    order by 1, 2, 3
  loop
    exit when v_taken >= a.most;
    continue when v_job.lane = any (v_waiting);
    if room_in(a, l, v_job.queue) > 0
      and (v_job.lane is null or keys_open_at(a, l, v_job.name, v_job.concurrency_key, v_job.rate_key) <= a.now) then
      l := count_claim(a, l, v_job.queue, v_job.name, v_job.concurrency_key, v_job.rate_key);
      v_taken := v_taken + 1;
      if v_job.lane is null then v_takes[v_job.place] := v_takes[v_job.place] + 1;
      else v_seqs := v_seqs || v_job.seq; end if;
    elsif v_job.lane is not null then
      v_waiting := v_waiting || v_job.lane;
    end if;
  end loop;
end
$$;

create function claim_mixed(a ask, p_lines waiting_line[], p_repeated boolean) returns json language plpgsql as $$
declare
  v_touched text[];
  v_groups waiting_line[];
  v_left boolean;
  v_fragile_seqs bigint[] := '{}';
  v_jobs json;
  v_next bigint;
  v_fragile bigint;
  l limits;
begin
  v_touched := array(
    select queue from unnest(p_lines) union select queue from unnest(find_gate_groups(a)) union select queue from fragile_jobs(a)
    union select queue from (select queue from arrivals where ns = a.ns order by entry limit absorbed_at_once(a)) first);
  l := read_limits(a, v_touched);
  a.now := now_ms(a.clock);
  v_left := absorb_arrivals(a);
  v_groups := find_gate_groups(a);
  if p_repeated then
    v_jobs := still_held(a);
  else
    if a.alone and a.most > 0 then v_fragile_seqs := claim_fragile(a, l); end if;
    if v_fragile_seqs <> '{}' then
      perform write_windows(a, v_fragile_seqs);
      v_jobs := hold_jobs(a, v_fragile_seqs, v_fragile_seqs, v_touched, null, null);
    else
      -- Jobs that reached a queue whose limits were not locked wait for the next claim.
      v_jobs := claim_in_turn(a, l, p_lines, array(select p from unnest(v_groups) p where p.queue = any (v_touched)));
    end if;
    if a.quiet and v_jobs is null then perform set_config('synchronous_commit', 'off', true); end if;
    l := read_limits(a, v_touched);
  end if;
  v_fragile := fragile_opens_at(a, l);
  if a.most + a.ahead > 0 then
    v_next := least(lines_next_at(a, l, p_lines), gates_next_at(a, l, v_groups), case when a.alone then v_fragile end,
      case when v_left then a.now end, fragile_next_at(a));
  end if;
  return json_build_object('outcome', 'claimed', 'jobs', v_jobs, 'now', a.now, 'nextAt', nullif(v_next, never()),
    'fragile', coalesce(v_fragile <= a.now, false));
end
$$;

-- Claims the jobs whose turn it is among lines and lanes, and sets when to look at the lanes again. While a lane has a job to offer,
-- nothing is taken ahead.
create function claim_in_turn(a ask, l limits, p_lines waiting_line[], p_groups waiting_line[]) returns json language plpgsql as $$
declare
  v_gates gate[] := lock_ready_lanes(a, l, p_groups);
  v_lanes text[] := array(select distinct lane from unnest(v_gates));
  v_offers candidate[] := lane_offers(a, v_lanes);
  v_choice record;
  v_turns record;
  v_direct integer := a.most;
  v_all bigint[];
  v_queues text[];
  v_name text;
  v_rank integer;
  v_alike boolean;
  v_line waiting_line;
  v_seqs bigint[] := '{}';
  v_missed text[] := '{}';
  v_taken text[] := '{}';
  v_jobs json;
begin
  if v_offers = '{}' then
    v_turns := take_turns(a, p_lines, share_out(a, p_lines, array(select greatest(room_in(a, l, queue), 0) from unnest(p_lines))), l.q_names);
  else
    a.ahead := 0;
    l := read_keys(a, l, array(select concurrency_key from unnest(v_offers)), array(select rate_key from unnest(v_offers)), true);
    v_choice := choose_jobs(a, l, p_lines, v_offers);
    l := v_choice.l;
    v_seqs := array(
      select held.seq from unnest(v_choice.v_seqs) as asked cross join lateral (
        select seq from jobs where seq = asked and shelf is not distinct from 'lane' offset 0 for no key update skip locked) held);
    -- A job that another call is changing was counted but not taken: its lane is looked at again, as if it had not been.
    v_missed := array(select lane from unnest(v_offers) where seq = any (v_choice.v_seqs) and seq <> all (v_seqs));
    v_taken := array(select distinct lane from unnest(v_offers) where seq = any (v_seqs));
    v_turns := take_turns(a, p_lines, v_choice.v_takes, l.q_names);
    v_direct := null;
  end if;
  if v_seqs <> '{}' or v_turns.v_seqs <> '{}' then
    v_all := v_seqs || v_turns.v_seqs;
    select array_agg(j.seq order by -j.priority, j.run_at, j.seq), array_agg(distinct j.queue), min(j.name), -min(j.priority),
      min(j.queue) = max(j.queue) and min(j.name) = max(j.name) and min(j.priority) = max(j.priority)
    into v_all, v_queues, v_name, v_rank, v_alike from unnest(v_all) as s
    cross join lateral (select seq, queue, name, priority, run_at from jobs where seq = s offset 0) j;
    if v_alike then v_line := row(v_queues[1], v_name, v_rank); end if;
  end if;
  if v_all <> '{}' then
    perform write_windows(a, v_all);
    v_jobs := hold_jobs(a, v_all, v_seqs, v_queues, v_line, v_direct);
  end if;
  perform time_lanes(a, l, array(select lane from unnest(v_lanes) as lane where lane <> all (v_missed)), v_taken,
    array(select o from unnest(v_offers) o where o.seq <> all (v_seqs)), v_gates);
  return v_jobs;
end
$$;

-- When the next job that must run alone becomes due. Index: jobs_fragile.
create function fragile_next_at(a ask) returns bigint language plpgsql as $$
begin
  return (
    select min(run_at) from jobs
    where shelf = 'fragile' and ns = a.ns and name = any (a.names) and (a.queues is null or queue = any (a.queues)) and run_at > a.now
  );
end
$$;
