-- Jobs with a key wait in lanes. A lane's row in lanes is the lock for reading it; its gates say which claimers should look.

create type gate as (lane text, queue text, name text);

-- A due job whose turn may come. expire_at: null if it can no longer expire.
create type candidate as (
  seq bigint, rank integer, run_at bigint, expire_at bigint, queue text, name text, lane text, concurrency_key text, rate_key text
);

-- How many lane events one claim processes: twice as many as it could claim.
create function absorbed_at_once(a ask) returns integer language sql immutable as $$ select greatest(2 * a.most, 100) $$;

-- Locks these lanes, but for those that another call holds, and returns them. Index: lanes_pkey.
create function lock_lanes(a ask, p_lanes text[]) returns text[] language plpgsql as $$
begin
  return array(
    select held.lane from (select lane from unnest(p_lanes) as lane order by lane collate "C") asked cross join lateral (
      select lane from lanes where ns = a.ns and lane = asked.lane offset 0 for update skip locked) held);
end
$$;

-- The rows of these lanes' gates; the caller holds the lanes. Index: gates_pkey.
create function gates_of(a ask, p_lanes text[]) returns tid[] stable language plpgsql as $$
begin
  return array(select g.ctid from unnest(p_lanes) as held cross join lateral (select ctid from gates where ns = a.ns and lane = held offset 0) g);
end
$$;

-- Processes what happened to lanes since they were last looked at, and opens their gates. If another call holds a lane, its events
-- stay for the next claim. Returns whether any were left. Lanes are made and locked in the order of their names, and nothing is waited for
-- after that. Index: arrivals_pkey, arrivals_lane, lanes_pkey, gates_pkey.
create function absorb_arrivals(a ask) returns boolean language plpgsql as $$
declare
  v_lanes text[] := array(
    select distinct lane from (select lane from arrivals where ns = a.ns order by entry limit absorbed_at_once(a)) first order by lane
  );
  v_changed text[];
begin
  if v_lanes = '{}' then return false; end if;
  insert into lanes (ns, lane) select a.ns, asked from unnest(v_lanes) as asked order by asked collate "C" on conflict do nothing;
  v_lanes := lock_lanes(a, v_lanes);
  with taken as (
    delete from arrivals where ctid = any (array(
      select r.ctid from unnest(v_lanes) as held cross join lateral (select ctid from arrivals where ns = a.ns and lane = held offset 0) r))
    returning lane, queue, name, at, changed
  ), opened as (
    insert into gates as g (ns, lane, queue, name, ready_at)
    select a.ns, t.lane, t.queue, t.name, min(t.at) from taken t group by t.lane, t.queue, t.name
    on conflict (ns, lane, queue, name) do update set ready_at = least(g.ready_at, excluded.ready_at)
    -- While the lane's key is saturated, a newly waiting job changes nothing.
    where g.ready_at is not null or g.concurrency_limit is null
  )
  select array_agg(distinct lane) filter (where changed) into v_changed from taken;
  if v_changed is not null then
    update gates set ready_at = least(ready_at, a.now), concurrency_limit = null where ctid = any (gates_of(a, v_changed));
  end if;
  return (select true from arrivals where ns = a.ns order by entry limit 1) is not null;
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
  v_lanes := lock_lanes(a, v_lanes);
  return array(
    select row(g.lane, g.queue, g.name)::gate from unnest(v_lanes) as held cross join lateral (
      select * from gates where ns = a.ns and lane = held offset 0) g
    where exists (select from unnest(p_groups) p where p.queue = g.queue and p.name = g.name) and (
      g.ready_at <= a.now
      or g.ready_at is null and g.concurrency_limit < coalesce(a.concurrency[array_position(a.names, g.name)], 2147483647))
  );
end
$$;

-- The first due jobs of each lane by turn, whatever their queues and names; p_most: of each lane. One statement for all lanes: starting one
-- for each took most of a claim's time. Index: jobs_lane, one range of it for each priority.
create function lane_fronts(a ask, p_lanes text[], p_most integer[]) returns setof candidate language plpgsql as $$
begin
  return query
    select front.* from unnest(p_lanes, p_most) as asked (lane, most) cross join lateral (
      with recursive ranks as (
        (select -j.priority as rank from jobs j where j.shelf = 'lane' and j.ns = a.ns and j.lane = asked.lane order by -j.priority limit 1)
        union all
        select next.rank from ranks r cross join lateral (
          select -j.priority as rank from jobs j where j.shelf = 'lane' and j.ns = a.ns and j.lane = asked.lane and -j.priority > r.rank
          order by -j.priority limit 1) next
      )
      select j.seq, r.rank, j.run_at, case when j.attempt = 0 then j.expire_at end, j.queue, j.name, j.lane, j.concurrency_key, j.rate_key
      from ranks r cross join lateral (
        select * from jobs
        where shelf = 'lane' and ns = a.ns and lane = asked.lane and -priority = r.rank and run_at <= a.now
          and (expire_at is null or expire_at > a.now or attempt > 0)
        order by run_at, seq limit asked.most) j
      order by r.rank, j.run_at, j.seq limit asked.most) front;
end
$$;

-- Sets for each gate that was looked at when looking again may find a job, now that the claim has taken its jobs. The caller holds
-- the lanes. p_changed: those of which a job was taken; gates of other queues and names may have waited for that job. p_left: what lanes
-- offered and was not taken, which shows their first jobs. Index: gates_pkey, jobs_gate, jobs_lane.
create function time_lanes(a ask, l limits, p_lanes text[], p_changed text[], p_left candidate[], p_gates gate[]) returns void
language plpgsql as $$
declare
  v_unknown text[] := array(select lane from unnest(p_lanes) as lane where lane <> all (array(select lane from unnest(p_left))));
begin
  if p_lanes = '{}' then return; end if;
  update gates set ready_at = a.now
  where ctid = any (gates_of(a, p_changed)) and (ready_at > a.now or ready_at is null and concurrency_limit is null);
  with heads as materialized (
    (select distinct on (lane) * from unnest(p_left) order by lane, rank, run_at, seq)
    union all
    select * from lane_fronts(a, v_unknown, array_fill(1, array[cardinality(v_unknown)]))
  ), seen as materialized (
    select g.lane, g.queue, g.name, head.seq is null as is_empty, head.expire_at, key.opens,
      -- When a job with a higher priority becomes due, another job is first.
      (select run_at from jobs where shelf = 'lane' and ns = a.ns and lane = g.lane and queue = g.queue and name = g.name and run_at > a.now
       order by run_at limit 1) as later,
      case when key.opens > a.now and key.is_first
        and l.k_active[array_position(l.k_names, head.concurrency_key)] >= a.concurrency[array_position(a.names, head.name)]
        then a.concurrency[array_position(a.names, head.name)] end as saturated
    from unnest(p_gates) g
    left join heads head on head.lane = g.lane
    cross join lateral (select coalesce(head.queue = g.queue and head.name = g.name, false) as is_first offset 0) first
    cross join lateral (select first.is_first, case when first.is_first
      then keys_open_at(a, l, head.name, head.concurrency_key, head.rate_key) else never() end as opens offset 0) key
    where g.lane = any (p_lanes)
  ), emptied as (
    delete from gates where ctid = any (array(
      select g.ctid from seen s cross join lateral (
        select ctid from gates where ns = a.ns and lane = s.lane and queue = s.queue and name = s.name offset 0) g
      where s.is_empty and s.later is null))
  )
  -- Each of them is there: the conflict finds it by its key, whatever the plan.
  insert into gates (ns, lane, queue, name, concurrency_limit, ready_at)
  select a.ns, s.lane, s.queue, s.name, s.saturated, case when s.saturated is not null then null when s.opens <= a.now then a.now
    else nullif(least(s.opens, s.later, s.expire_at), never()) end
  from seen s where not (s.is_empty and s.later is null)
  on conflict (ns, lane, queue, name) do update set concurrency_limit = excluded.concurrency_limit, ready_at = excluded.ready_at;
  delete from lanes where ctid = any (array(
    select r.ctid from unnest(p_lanes) as held cross join lateral (select ctid from lanes where ns = a.ns and lane = held offset 0) r
    where (select true from gates where ns = a.ns and lane = held limit 1) is null));
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
