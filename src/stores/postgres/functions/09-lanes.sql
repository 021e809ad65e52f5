-- Jobs with a key wait in lanes. A lane's row in lanes is the lock for reading it; its gates say which claimers should look.

create type gate as (lane text, queue text, name text);

-- A due job whose turn may come. expire_at: null if it can no longer expire.
create type candidate as (
  seq bigint, rank integer, run_at bigint, expire_at bigint, queue text, name text, lane text, concurrency_key text, rate_key text
);

-- How many lane events one claim processes: twice as many as it could claim.
create function absorbed_at_once(a ask) returns integer language sql immutable as $$ select greatest(2 * a.most, 100) $$;

-- Processes what happened to lanes since they were last looked at, and opens their gates. If another call holds a lane, its events
-- stay for the next claim. Returns whether any were left. Lanes are locked in the order of their names, and nothing is waited for
-- after that. Index: arrivals_pkey, arrivals_lane, lanes_pkey.
create function absorb_arrivals(a ask) returns boolean language plpgsql as $$
declare
  v_lanes text[] := array(
    select distinct lane from (select lane from arrivals where ns = a.ns order by entry limit absorbed_at_once(a)) first order by lane
  );
  v_lane text;
begin
  if v_lanes = '{}' then return false; end if;
  foreach v_lane in array v_lanes loop
    insert into lanes (ns, lane) values (a.ns, v_lane) on conflict do nothing;
    perform from lanes where ns = a.ns and lane = v_lane for update skip locked;
    if found then perform absorb_lane(a, v_lane); end if;
  end loop;
  return (select true from arrivals where ns = a.ns order by entry limit 1) is not null;
end
$$;

-- The same for one lane, which the caller has locked.
create function absorb_lane(a ask, p_lane text) returns void language plpgsql as $$
declare
  v_changed boolean;
begin
  with taken as (
    delete from arrivals where ns = a.ns and lane = p_lane returning queue, name, at, changed
  ), opened as (
    insert into gates as g (ns, lane, queue, name, ready_at)
    select a.ns, p_lane, t.queue, t.name, min(t.at) from taken t group by t.queue, t.name
    on conflict (ns, lane, queue, name) do update set ready_at = least(g.ready_at, excluded.ready_at)
    -- While the lane's key is saturated, a newly waiting job changes nothing.
    where g.ready_at is not null or g.concurrency_limit is null
  )
  select bool_or(changed) into v_changed from taken;
  if v_changed then
    update gates set ready_at = least(ready_at, a.now), concurrency_limit = null where ns = a.ns and lane = p_lane;
  end if;
end
$$;

-- The queues and names with gates for this claimer. Index: gates_ready.
create function find_gate_groups(a ask) returns waiting_line[] language plpgsql as $$
begin
  return (
    with recursive found as (
      (select g.queue, g.name from gates g where g.ns + 0 = a.ns order by g.queue, g.name limit 1)
      union all
      select next.* from found f cross join lateral (
        select g.queue, g.name from gates g where g.ns + 0 = a.ns and (g.queue, g.name) > (f.queue, f.name) order by g.queue, g.name limit 1) next
    )
    select coalesce(array_agg(row(f.queue, f.name, 0)::waiting_line), '{}') from found f
    where f.name = any (a.names) and (a.queues is null or f.queue = any (a.queues))
      and not exists (select from queues q where q.ns = a.ns and q.queue = f.queue and q.paused)
  );
end
$$;

-- Locks the lanes that may have a job for this claimer: the first ones that became ready, and closed ones whose limit was lower than this
-- claimer's; locked ones are skipped. With a small limit, more lanes than that are looked at, so one with an urgent job is not
-- missed in favour of one that was ready first. Returns the gates through which they were found. Index: gates_ready, lanes_pkey.
create function lock_ready_lanes(a ask, l limits, p_groups waiting_line[]) returns gate[] language plpgsql as $$
declare
  v_most integer := greatest(a.most, 20);
  v_lanes text[] := array(
    select distinct found.lane from unnest(p_groups) as p cross join lateral (
      (select g.lane from gates g where g.ns + 0 = a.ns and g.queue = p.queue and g.name = p.name and g.ready_at <= a.now
       order by g.ready_at limit v_most)
      union all
      (select g.lane from gates g where g.ns + 0 = a.ns and g.queue = p.queue and g.name = p.name and g.ready_at is null
         and g.concurrency_limit < coalesce(a.concurrency[array_position(a.names, p.name)], 2147483647) limit v_most)
    ) found where queue_opens_at(a, l, p.queue) <= a.now
  );
begin
  if v_lanes = '{}' then return '{}'; end if;
  -- Something else wrote to a gate whose lane has no row. It must be looked at once, to be closed.
  insert into lanes (ns, lane) select a.ns, asked from unnest(v_lanes) as asked
  where not exists (select from lanes where ns = a.ns and lane = asked) on conflict do nothing;
  v_lanes := array(
    select held.lane from (select lane from unnest(v_lanes) as lane order by lane) asked cross join lateral (
      select lane from lanes where ns = a.ns and lane = asked.lane offset 0 for update skip locked) held);
  return array(
    select row(g.lane, g.queue, g.name)::gate from unnest(v_lanes) as held cross join lateral (
      select * from gates where ns = a.ns and lane = held offset 0) g
    where exists (select from unnest(p_groups) p where p.queue = g.queue and p.name = g.name) and (
      g.ready_at <= a.now
      or g.ready_at is null and g.concurrency_limit < coalesce(a.concurrency[array_position(a.names, g.name)], 2147483647))
  );
end
$$;

-- The first due jobs of a lane by turn, whatever their queues and names. Index: jobs_lane, one range of it for each priority.
create function lane_front(a ask, p_lane text, p_most integer) returns setof candidate language plpgsql as $$
begin
  return query
    with recursive ranks as (
      (select -j.priority as rank from jobs j where j.shelf = 'lane' and j.ns = a.ns and j.lane = p_lane order by -j.priority limit 1)
      union all
      select next.rank from ranks r cross join lateral (
        select -j.priority as rank from jobs j where j.shelf = 'lane' and j.ns = a.ns and j.lane = p_lane and -j.priority > r.rank
        order by -j.priority limit 1) next
    )
    select j.seq, r.rank, j.run_at, case when j.attempt = 0 then j.expire_at end, j.queue, j.name, j.lane, j.concurrency_key, j.rate_key
    from ranks r cross join lateral (
      select * from jobs
      where shelf = 'lane' and ns = a.ns and lane = p_lane and -priority = r.rank and run_at <= a.now
        and (expire_at is null or expire_at > a.now or attempt > 0)
      order by run_at, seq limit p_most) j
    order by r.rank, j.run_at, j.seq limit p_most;
end
$$;

-- Sets for each gate that was looked at when looking again may find a job, now that the claim has taken its jobs. The caller holds
-- the lane. p_changed: a job was taken from it, and gates of other queues and names may have waited for that job. Index: jobs_gate.
create function time_lane(a ask, l limits, p_lane text, p_gates gate[], p_changed boolean) returns void language plpgsql as $$
declare
  v_head candidate;
  v_gate gate;
  v_later bigint;
  v_opens bigint;
begin
  if p_changed then
    update gates set ready_at = a.now
    where ns = a.ns and lane = p_lane and (ready_at > a.now or ready_at is null and concurrency_limit is null);
  end if;
  select * into v_head from lane_front(a, p_lane, 1);
  foreach v_gate in array p_gates loop
    continue when v_gate.lane <> p_lane;
    v_later := (
      select run_at from jobs where shelf = 'lane' and ns = a.ns and lane = p_lane and queue = v_gate.queue and name = v_gate.name and run_at > a.now
      order by run_at limit 1);
    v_opens := never();
    if v_head.seq is not null and v_head.queue = v_gate.queue and v_head.name = v_gate.name then
      v_opens := keys_open_at(a, l, v_head.name, v_head.concurrency_key, v_head.rate_key);
    end if;
    if v_head.seq is null and v_later is null then
      delete from gates where ns = a.ns and lane = p_lane and queue is not distinct from v_gate.queue and name is not distinct from v_gate.name;
    elsif v_opens > a.now and v_head.queue = v_gate.queue and v_head.name = v_gate.name
      and l.k_active[array_position(l.k_names, v_head.concurrency_key)] >= a.concurrency[array_position(a.names, v_head.name)] then
      update gates set ready_at = null, concurrency_limit = a.concurrency[array_position(a.names, v_head.name)]
      where ns = a.ns and lane = p_lane and queue is not distinct from v_gate.queue and name is not distinct from v_gate.name;
    else
      -- When a job with a higher priority becomes due, or the first one expires, another job is first.
      update gates set concurrency_limit = null, ready_at = nullif(case when v_opens <= a.now then a.now else
        least(v_opens, v_later, v_head.expire_at) end, never())
      where ns = a.ns and lane = p_lane and queue is not distinct from v_gate.queue and name is not distinct from v_gate.name;
    end if;
  end loop;
  if not exists (select from gates where ns = a.ns and lane = p_lane) then delete from lanes where ns = a.ns and lane = p_lane; end if;
end
$$;

-- When looking at gates again may find a job. Index: gates_ready.
create function gates_next_at(a ask, l limits, p_groups waiting_line[]) returns bigint language plpgsql as $$
begin
  return (
    select min(greatest(g.ready_at, queue_opens_at(a, l, p.queue))) from unnest(p_groups) as p cross join lateral (
      select ready_at from gates where ns + 0 = a.ns and queue = p.queue and name = p.name and ready_at is not null order by ready_at limit 1) g
  );
end
$$;
