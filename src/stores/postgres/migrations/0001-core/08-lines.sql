-- Plain jobs: those without a key. They stand in lines, one for each queue, name and priority.

create type waiting_line as (queue text, name text, rank integer);

-- The lines that have jobs for this claimer. It leaps through the index from one line to the next, so that a backlog of other names, or of
-- a paused queue, costs a step for each of its lines. Index: jobs_plain.
create function find_lines(a ask) returns waiting_line[] language plpgsql as $$
begin
  return (
    with recursive found as (
      (select j.queue, j.name, -j.priority as rank from jobs j where j.shelf = 'plain' and j.ns = a.ns
       order by j.queue, j.name, -j.priority limit 1)
      union all
      select next.* from found f cross join lateral (
        select j.queue, j.name, -j.priority as rank from jobs j
        where j.shelf = 'plain' and j.ns = a.ns and (j.queue, j.name, -j.priority) > (f.queue, f.name, f.rank)
        order by j.queue, j.name, -j.priority limit 1) next
    )
    select coalesce(array_agg(row(f.queue, f.name, f.rank)::waiting_line order by f.rank), '{}') from found f
    where f.name = any (a.names) and (a.queues is null or f.queue = any (a.queues))
      and not exists (select from queues q where q.ns = a.ns and q.queue = f.queue and q.paused)
  );
end
$$;

-- How many jobs of each line have their turn among the first that the claim may take. Index: jobs_plain.
create function share_out(a ask, p_lines waiting_line[], p_room integer[]) returns integer[] language plpgsql as $$
begin
  return (
    select array_agg(coalesce(shares.times, 0) order by l.place) from unnest(p_lines) with ordinality as l (queue, name, rank, place)
    left join (
      select place, count(*)::integer as times from (
        select t.place from (
          select l.place, l.rank, j.run_at, j.seq, p_room[l.place] as room,
            row_number() over (partition by l.queue order by l.rank, j.run_at, j.seq) as place_in_queue
          from unnest(p_lines) with ordinality as l (queue, name, rank, place) cross join lateral (
            select run_at, seq from jobs
            where shelf = 'plain' and ns = a.ns and queue = l.queue and name = l.name and -priority = l.rank and run_at <= a.now
              and (expire_at is null or expire_at > a.now or attempt > 0)
            order by run_at, seq limit greatest(least(a.most, p_room[l.place]), 0)) j
        ) t where t.place_in_queue <= t.room order by t.rank, t.run_at, t.seq limit a.most
      ) chosen group by place
    ) shares using (place)
  );
end
$$;

-- Locks so many jobs of each line, passing over what others hold, and returns where their rows are. Index: jobs_plain.
create function lock_from_lines(a ask, p_lines waiting_line[], p_takes integer[]) returns tid[] language plpgsql as $$
begin
  return array(
    select j.ctid from unnest(p_lines) with ordinality as l (queue, name, rank, place) cross join lateral (
      select ctid from jobs
      where shelf = 'plain' and ns = a.ns and queue = l.queue and name = l.name and -priority = l.rank and run_at <= a.now
        and (expire_at is null or expire_at > a.now or attempt > 0)
      order by run_at, seq limit p_takes[l.place] for no key update skip locked) j
  );
end
$$;

-- Makes jobs whose rows are locked the claimer's. It is the last moment to keep who settled an earlier claim. Returns them by turn, in
-- columns, as claim.ts reads them: an array of each costs less than many small ones.
create function hold_jobs(a ask, p_rows tid[]) returns json language plpgsql as $$
declare
  v_jobs json;
begin
  if p_rows = '{}' then return null; end if;
  with held as (
    update jobs set state = 'active', reason = null, attempt = attempt + 1, token = token + 1,
      settled_by = case when settled = 0 then null else coalesce(settled_by, claimer) end,
      claimer = a.claimer, claim_sequence = a.sequence, claimed_at = a.now, lease_until = a.now + a.lease_ms
    where ctid = any (p_rows)
    returning seq, id, name, queue, delivery, priority, tags, run_at, fire_at, enqueued_at, attempt, attempts, crashes, max_crashes,
      redrives, token, schedule, input, cancel_requested, version
  )
  select json_build_array(array_agg(id), array_agg(name), array_agg(queue), array_agg(delivery), array_agg(priority),
    json_agg(case when tags <> '{}' then tags end), array_agg(run_at), array_agg(fire_at), array_agg(enqueued_at), array_agg(attempt),
    array_agg(attempts), array_agg(crashes), array_agg(max_crashes), array_agg(redrives), array_agg(token), array_agg(schedule),
    array_agg(input), array_agg(cancel_requested), array_agg(version))
  into v_jobs from (select * from held order by -priority, run_at, seq) h;
  return v_jobs;
end
$$;

-- When looking at the lines again may bring a job. Index: jobs_plain.
create function lines_next_at(a ask, l limits, p_lines waiting_line[]) returns bigint language plpgsql as $$
begin
  return (
    select min(case when j.run_at > a.now then j.run_at else queue_opens_at(a, l, line.queue) end)
    from unnest(p_lines) as line cross join lateral (
      select run_at from jobs
      where shelf = 'plain' and ns = a.ns and queue = line.queue and name = line.name and -priority = line.rank
        and (expire_at is null or expire_at > a.now or attempt > 0)
      order by run_at, seq limit 1) j
  );
end
$$;
