-- Plain jobs: those without a key. They wait in lines, one for each queue, name and priority.

create type waiting_line as (queue text, name text, rank integer);

-- What a claim finds. v_mixed: there may be lanes or jobs that must run alone; v_limited: some queue has limits; without either, the fast path
-- applies. v_lines: the lines that have jobs for this claimer. It skips through the index from one line to the next, so a backlog of other
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

-- How many jobs of each line are among the first that the claim may take. Index: turns_pkey.
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

-- Takes the turns of this many jobs of each line, skipping locked ones. Those beyond a.most are taken ahead: they stop before
-- the first that may only be claimed directly, or is of one of the queues with limits, p_limited. Returns the numbers of the jobs by turn,
-- and the place of the last one if there was no room for more. Index: turns_pkey.
create function take_turns(
  a ask, p_lines waiting_line[], p_takes integer[], p_limited text[], out v_seqs bigint[], out v_last_at bigint, out v_last bigint
) language plpgsql as $$
begin
  with locked as materialized (
    select row_number() over (order by l.rank, t.run_at, t.seq) as n, l.queue, l.rank, t.*
    from unnest(p_lines) with ordinality as l (queue, name, rank, place) cross join lateral (
      select w.ctid as turn, w.run_at, w.seq, w.direct from turns w
      where w.ns = a.ns and w.queue = l.queue and w.name = l.name and w.rank = l.rank and w.run_at <= a.now
        and (w.expire_at is null or w.expire_at > a.now)
      order by w.run_at, w.seq limit p_takes[l.place] for update skip locked) t
  ), chosen as materialized (
    select * from locked where a.ahead = 0 or n < coalesce((
      select min(n) from locked where n > a.most and (direct or queue = any (p_limited))), 2147483647)
  ), gone as (
    delete from turns where ctid = any (array(select turn from chosen))
  )
  select array_agg(seq order by n), max(run_at) filter (where n = a.most + a.ahead), max(seq) filter (where n = a.most + a.ahead)
  into v_seqs, v_last_at, v_last from chosen;
end
$$;

-- The same for one line, which is what most claims find: rows already in order are neither sorted nor numbered. p_limited: its queue has limits.
-- Index: turns_pkey.
create function take_line(
  a ask, p_line waiting_line, p_take integer, p_limited boolean, out v_seqs bigint[], out v_last_at bigint, out v_last bigint
) language plpgsql as $$
declare
  v_turns tid[];
  v_direct boolean[];
  v_end integer;
begin
  select array_agg(turn), array_agg(seq), array_agg(direct), max(run_at) into v_turns, v_seqs, v_direct, v_last_at from (
    select ctid as turn, run_at, seq, direct from turns
    where ns = a.ns and queue = p_line.queue and name = p_line.name and rank = p_line.rank and run_at <= a.now
      and (expire_at is null or expire_at > a.now)
    order by run_at, seq limit p_take for update skip locked) locked;
  if v_seqs is null then return; end if;
  v_last := v_seqs[cardinality(v_seqs)];
  if a.ahead > 0 then
    v_end := case when p_limited then a.most + 1 else array_position(v_direct, true, a.most + 1) end;
    if v_end <= cardinality(v_seqs) then
      v_turns := v_turns[1:v_end - 1];
      v_seqs := v_seqs[1:v_end - 1];
    end if;
  end if;
  if cardinality(v_seqs) < a.most + a.ahead then
    v_last_at := null;
    v_last := null;
  end if;
  delete from turns where ctid = any (v_turns);
end
$$;

-- Gives the claimer jobs whose turns the caller has taken, or whose rows it has locked on their shelves (p_shelved, a part of p_seqs); p_seqs
-- is in turn order. p_queues: they are of no other queue. p_line: they are all of this line; null if they are not. Those after the first
-- p_direct are ahead, none if that is null. Returns them by turn, in columns, as claim.ts reads them: one array per column costs less than many
-- small ones, and a value that all share is sent once. Rare values are in a separate list.
-- Null if there are none: then another program has written a turn. Index: jobs_pkey, untried_pkey.
create function hold_jobs(a ask, p_seqs bigint[], p_shelved bigint[], p_queues text[], p_line waiting_line, p_direct integer) returns json
language plpgsql as $$
declare
  v_ids text[];
  v_inputs text[];
  v_seqs bigint[];
  v_run_at bigint[];
  v_enqueued_at bigint[];
  v_attempt integer[];
  v_token integer[];
  v_delivery text;
  v_alike boolean;
  v_attempts integer;
  v_max_crashes integer;
  v_rare json;
begin
  with taken as materialized (
    select s.place, j.* from unnest(p_seqs) with ordinality as s (seq, place) cross join lateral (
      select seq, id, name, queue, delivery, priority, tags, run_at, fire_at, enqueued_at, risen(attempt) as attempt, attempts, crashes, max_crashes,
        redrives, risen(token) as token, schedule, input, cancel_requested, concurrency_key, slot, retention
      from jobs where seq = s.seq offset 0) j
  ), held as (
    insert into active (
      seq, claimed_at, lease_until, claim_sequence, ns, attempt, token, slot, ahead, relayed, queue, name, claimer, concurrency_key, retention
    )
    select seq, a.now, a.now + a.lease_ms, a.sequence, a.ns, attempt, token, slot, coalesce(place > p_direct, false), false, queue, name,
      a.claimer, concurrency_key, retention from taken
  ), noted as (
    insert into claims as c (ns, claimer, sequence, open, until, queues, seqs)
    values (a.ns, a.claimer, a.sequence, cardinality(p_seqs), a.now + a.lease_ms, p_queues, p_seqs)
    -- A claimer that was forgotten counts from the start again.
    on conflict (ns, claimer, sequence) do update set open = c.open + excluded.open, until = least(c.until, excluded.until),
      queues = c.queues || excluded.queues, seqs = c.seqs || excluded.seqs
  )
  select array_agg(id), array_agg(input), array_agg(seq), array_agg(run_at), array_agg(enqueued_at), array_agg(attempt), array_agg(token),
    min(delivery), min(delivery) = max(delivery) and min(attempts) = max(attempts) and min(max_crashes) = max(max_crashes), min(attempts),
    min(max_crashes),
    json_agg(json_build_array(id, fire_at, tags, crashes, redrives, schedule, cancel_requested))
      filter (where fire_at <> run_at or crashes > 0 or redrives > 0 or cardinality(tags) > 0 or schedule is not null or cancel_requested)
  into v_ids, v_inputs, v_seqs, v_run_at, v_enqueued_at, v_attempt, v_token, v_delivery, v_alike, v_attempts, v_max_crashes, v_rare from taken;
  if p_shelved <> '{}' then update jobs set shelf = null where seq = any (p_shelved); end if;
  if exists (select from untried where ns = a.ns) then delete from untried where seq = any (p_seqs); end if;
  if v_ids is null then return null; end if;
  if not v_alike or p_line is null then return told_jobs(v_seqs); end if;
  return json_build_array(v_ids, p_line.name, p_line.queue, v_delivery, -p_line.rank, v_run_at, v_enqueued_at, v_attempt, v_attempts,
    v_max_crashes, v_token, v_inputs, v_rare, v_seqs);
end
$$;

-- Active jobs in the form that a claim returns, in the order of p_seqs. Index: jobs_pkey, active_pkey, ended_pkey.
create function told_jobs(p_seqs bigint[]) returns json language plpgsql as $$
begin
  return (
    select json_build_array(array_agg(j.id), array_agg(j.name), array_agg(j.queue), array_agg(j.delivery), array_agg(j.priority),
      array_agg(j.run_at), array_agg(j.enqueued_at), array_agg(j.attempt), array_agg(j.attempts), array_agg(j.max_crashes), array_agg(j.token),
      array_agg(j.input), json_agg(json_build_array(j.id, j.fire_at, j.tags, j.crashes, j.redrives, j.schedule, j.cancel_requested)), array_agg(j.seq))
    from unnest(p_seqs) as s cross join lateral (select * from all_jobs where seq = s offset 0) j
  );
end
$$;

-- Whether the only line has more due jobs behind the last one taken. There the index is fresh; starting at its beginning, as
-- lines_next_at does, means skipping all that has gone since the last vacuum. Index: turns_pkey.
create function more_behind(a ask, p_lines waiting_line[], p_run_at bigint, p_seq bigint) returns boolean language plpgsql as $$
begin
  return p_seq is not null and cardinality(p_lines) = 1 and exists (
    select from turns where ns = a.ns and queue = p_lines[1].queue and name = p_lines[1].name and rank = p_lines[1].rank
      and (run_at, seq) > (p_run_at, p_seq) and run_at <= a.now and (expire_at is null or expire_at > a.now));
end
$$;

-- When looking at the lines again may find a job. Index: turns_pkey.
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
