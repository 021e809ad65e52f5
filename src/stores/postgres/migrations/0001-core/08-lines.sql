-- Plain jobs: those without a key. They stand in lines, one for each queue, name and priority.

create type waiting_line as (queue text, name text, rank integer);

-- What a claim finds. v_mixed: there may be lanes or jobs that must run alone; v_limited: some queue has limits; without either, the way is
-- short. v_lines: the lines that have jobs for this claimer. It leaps through the index from one line to the next, so that a backlog of other
-- names, or of a paused queue, costs a step for each of its lines. Index: turns_pkey.
create function survey(a ask, out v_mixed boolean, out v_limited boolean, out v_lines waiting_line[]) language plpgsql as $$
begin
  with recursive found as (
    (select t.queue, t.name, t.rank from turns t where t.ns = a.ns order by t.queue, t.name, t.rank limit 1)
    union all
    select next.* from found f cross join lateral (
      select t.queue, t.name, t.rank from turns t where t.ns = a.ns and (t.queue, t.name, t.rank) > (f.queue, f.name, f.rank)
      order by t.queue, t.name, t.rank limit 1) next
  )
  select
    exists (select from gates where ns = a.ns) or exists (select from arrivals where ns = a.ns)
      or (select true from jobs where shelf = 'fragile' and ns = a.ns order by queue, name, run_at limit 1) is not null,
    exists (select from queues where ns = a.ns and not paused and (concurrency is not null or rate_limit is not null)),
    (select coalesce(array_agg(row(f.queue, f.name, f.rank)::waiting_line order by f.rank), '{}') from found f
     where f.name = any (a.names) and (a.queues is null or f.queue = any (a.queues))
       and not exists (select from queues q where q.ns = a.ns and q.queue = f.queue and q.paused))
  into v_mixed, v_limited, v_lines;
end
$$;

-- How many jobs of each line have their turn among the first that the claim may take. Index: turns_pkey.
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
            select run_at, seq from turns
            where ns = a.ns and queue = l.queue and name = l.name and rank = l.rank and run_at <= a.now
              and (expire_at is null or expire_at > a.now)
            order by run_at, seq limit greatest(least(a.most + a.ahead, p_room[l.place]), 0)) j
        ) t where t.place_in_queue <= t.room order by t.rank, t.run_at, t.seq limit a.most + a.ahead
      ) chosen group by place
    ) shares using (place)
  );
end
$$;

-- Locks so many jobs of each line, passing over what others hold, and takes their turns. Those beyond a.most are taken ahead: they end before
-- the first that may only be claimed directly, or is of one of the queues with limits, p_limited. Returns where the rows of the jobs are, the
-- place of the last that is not ahead, and that of the last of all where there was no room for more.
-- A turn is read by the statement's snapshot, its job as it stands. One whose turn was given anew meanwhile cannot be told from one that is as it
-- was: then not every turn is found again, and the call is repeated. Index: turns_pkey, jobs_pkey.
create function take_turns(
  a ask, p_lines waiting_line[], p_takes integer[], p_limited text[], out v_rows tid[], out v_rank integer, out v_run_at bigint, out v_seq bigint,
  out v_last_at bigint, out v_last bigint
) language plpgsql as $$
declare
  v_gone integer;
begin
  with locked as materialized (
    select row_number() over (order by l.rank, t.run_at, t.seq) as n, l.queue, l.rank, t.*
    from unnest(p_lines) with ordinality as l (queue, name, rank, place) cross join lateral (
      select w.ctid as turn, j.ctid as job, w.run_at, w.seq, w.direct from turns w cross join lateral (
        select ctid from jobs where seq = w.seq and state is not distinct from 'waiting' and run_at is not distinct from w.run_at
        offset 0 for no key update skip locked) j
      where w.ns = a.ns and w.queue = l.queue and w.name = l.name and w.rank = l.rank and w.run_at <= a.now
        and (w.expire_at is null or w.expire_at > a.now)
      order by w.run_at, w.seq limit p_takes[l.place]) t
  ), chosen as materialized (
    select * from locked where a.ahead = 0 or n < coalesce((
      select min(n) from locked where n > a.most and (direct or queue = any (p_limited))), 2147483647)
  ), gone as (
    delete from turns where ctid = any (array(select turn from chosen)) returning seq
  )
  select array_agg(job), (select count(*) from gone), max(rank) filter (where n = a.most), max(run_at) filter (where n = a.most),
    max(seq) filter (where n = a.most), max(run_at) filter (where n = a.most + a.ahead), max(seq) filter (where n = a.most + a.ahead)
  into v_rows, v_gone, v_rank, v_run_at, v_seq, v_last_at, v_last from chosen;
  if a.most = 0 then
    v_rank := -2147483648;
    v_run_at := 0;
    v_seq := 0;
  end if;
  if v_gone <> coalesce(cardinality(v_rows), 0) then
    raise exception 'a turn was given anew while its job was taken' using errcode = 'serialization_failure';
  end if;
end
$$;

-- Makes jobs whose rows are locked the claimer's; those that come after (p_rank, p_run_at, p_seq) are ahead, none where that is null. It is
-- the last moment to keep who settled an earlier claim. Returns them by turn, in columns, as claim.ts reads them: an array of each costs
-- less than many small ones. What is almost never there comes in a list of its own.
create function hold_jobs(a ask, p_rows tid[], p_rank integer, p_run_at bigint, p_seq bigint) returns json language plpgsql as $$
declare
  v_jobs json;
begin
  with held as (
    update jobs set state = 'active', reason = null, attempt = attempt + 1, token = token + 1,
      settled_by = case when settled = 0 then null else coalesce(settled_by, claimer) end,
      ahead = coalesce((-priority, run_at, seq) > (p_rank, p_run_at, p_seq), false),
      claimer = a.claimer, claim_sequence = a.sequence, claimed_at = a.now, lease_until = a.now + a.lease_ms,
      shelf = null, held_key = concurrency_key, expires_at = null, open_debounce = null
    where ctid = any (p_rows)
    returning seq, id, name, queue, delivery, priority, tags, run_at, fire_at, enqueued_at, attempt, attempts, crashes, max_crashes,
      redrives, token, schedule, input, cancel_requested
  ), noted as (
    insert into claims as c (ns, claimer, sequence, open, until, queues, seqs)
    select a.ns, a.claimer, a.sequence, count(*), a.now + a.lease_ms, array_agg(distinct queue), array_agg(seq) from held
    -- A claimer that was forgotten begins to count anew.
    on conflict (ns, claimer, sequence) do update set open = c.open + excluded.open, until = least(c.until, excluded.until),
      queues = c.queues || excluded.queues, seqs = c.seqs || excluded.seqs
  )
  select json_build_array(array_agg(id), array_agg(name), array_agg(queue), array_agg(delivery), array_agg(priority), array_agg(run_at),
    array_agg(enqueued_at), array_agg(attempt), array_agg(attempts), array_agg(max_crashes), array_agg(token), array_agg(input),
    json_agg(json_build_array(id, fire_at, tags, crashes, redrives, schedule, cancel_requested))
      filter (where fire_at <> run_at or tags <> '{}' or crashes > 0 or redrives > 0 or schedule is not null or cancel_requested))
  into v_jobs from (select * from held order by -priority, run_at, seq) h;
  return v_jobs;
end
$$;

-- Whether more is due in the only line behind the last job that was taken from it. There the index is fresh; to look from its beginning, as
-- lines_next_at does, is to pass over what has gone since it was vacuumed. Index: turns_pkey.
create function more_behind(a ask, p_lines waiting_line[], p_run_at bigint, p_seq bigint) returns boolean language plpgsql as $$
begin
  return p_seq is not null and cardinality(p_lines) = 1 and exists (
    select from turns where ns = a.ns and queue = p_lines[1].queue and name = p_lines[1].name and rank = p_lines[1].rank
      and (run_at, seq) > (p_run_at, p_seq) and run_at <= a.now and (expire_at is null or expire_at > a.now));
end
$$;

-- When looking at the lines again may bring a job. Index: turns_pkey.
create function lines_next_at(a ask, l limits, p_lines waiting_line[]) returns bigint language plpgsql as $$
begin
  return (
    select min(case when t.run_at > a.now then t.run_at else queue_opens_at(a, l, line.queue) end)
    from unnest(p_lines) as line cross join lateral (
      select run_at from turns
      where ns = a.ns and queue = line.queue and name = line.name and rank = line.rank and (expire_at is null or expire_at > a.now)
      order by run_at, seq limit 1) t
  );
end
$$;
