-- The limits between one claimer and the due jobs.

-- One claimer's request. clock: the test's time, or null. most: how many jobs it starts at once; ahead: how many more it takes.
-- quiet: nothing else is written in this transaction. queues: those it asks for, with the maximum number of jobs of each;
-- null: every queue. names: what it can run, each with the limits that its definition sets for keys (null: none).
create type ask as (
  ns integer, clock bigint, now bigint, claimer text, sequence bigint, lease_ms bigint, most integer, ahead integer, alone boolean, quiet boolean,
  queues text[], queue_limits integer[], names text[], concurrency integer[], rate_limits integer[], rate_spans bigint[]
);

-- Limits during a claim; lists with the same first letter belong together.
-- q: configured queues, with the room that their limit leaves (null: any number), and their window. a: what is left of the number
-- asked for, parallel to ask.queues. k: concurrency keys and their active jobs. w: rate keys and their windows.
create type limits as (
  q_names text[], q_room integer[], q_rates integer[], q_spans bigint[], q_started bigint[], q_used integer[],
  a_left integer[], k_names text[], k_active integer[], w_names text[], w_started bigint[], w_used integer[]
);

-- Later than any time: only an event can open the way, not time.
create function never() returns bigint language sql immutable as $$ select 9223372036854775807 $$;

-- How many jobs of a queue are active, counted up to p_most. Index: claims_pkey, active_pkey.
create function active_in_queue(p_ns integer, p_queue text, p_most integer) returns integer language plpgsql as $$
begin
  return (
    select count(*)::integer from (
      select from (select claimer, sequence, seqs from claims where ns = p_ns and p_queue = any (queues) offset 0) c
      cross join lateral unnest(c.seqs) as s
      cross join lateral (
        select from active where seq = s and queue is not distinct from p_queue and claimer = c.claimer and claim_sequence = c.sequence offset 0) x
      limit p_most
    ) active
  );
end
$$;

-- Reads the limits of queues. Those that have jobs for this claim are locked first, in the order of their names, so a limit holds
-- exactly however many claim at once; queues without limits are not locked. Index: queues_pkey, claims_pkey.
create function read_limits(a ask, p_touched text[]) returns limits language plpgsql as $$
declare
  l limits := no_limits(a);
begin
  perform from queues
  where ns = a.ns and queue = any (p_touched) and not paused and (concurrency is not null or rate_limit is not null)
  order by queue for update;
  a.now := now_ms(a.clock);
  select coalesce(array_agg(q.queue), '{}'), array_agg(q.concurrency - active_in_queue(a.ns, q.queue, q.concurrency)),
    array_agg(q.rate_limit), array_agg(q.rate_per_ms), array_agg(w.started_at), array_agg(w.used)
  into l.q_names, l.q_room, l.q_rates, l.q_spans, l.q_started, l.q_used
  from queues q left join windows w on w.ns = q.ns and w.kind = 'queue' and w.key = q.queue
  where q.ns = a.ns and q.queue = any (p_touched) and not q.paused and (q.concurrency is not null or q.rate_limit is not null);
  return l;
end
$$;

-- If no queue has a limit, only the request limits a claim.
create function no_limits(a ask) returns limits language plpgsql immutable as $$
declare
  l limits;
begin
  l.q_names := '{}';
  l.a_left := a.queue_limits;
  l.k_names := '{}';
  l.w_names := '{}';
  return l;
end
$$;

-- When a window allows another claim. A window from the future means that the clock was set back.
create function window_opens_at(p_now bigint, p_limit integer, p_span bigint, p_started bigint, p_used integer) returns bigint
language sql immutable as $$
  select case when p_limit is null or p_started is null or p_now < p_started or p_now >= p_started + p_span or p_used < p_limit
    then p_now else p_started + p_span end
$$;

-- When a queue's own limits allow a due job: now, at the end of a window, or never by time alone.
create function queue_opens_at(a ask, l limits, p_queue text) returns bigint language plpgsql immutable as $$
declare
  i integer := array_position(l.q_names, p_queue);
begin
  if i is null then return a.now; end if;
  if l.q_room[i] <= 0 then return never(); end if;
  return window_opens_at(a.now, l.q_rates[i], l.q_spans[i], l.q_started[i], l.q_used[i]);
end
$$;

-- The same for the limits of a job's keys.
create function keys_open_at(a ask, l limits, p_name text, p_concurrency_key text, p_rate_key text) returns bigint
language plpgsql immutable as $$
declare
  n integer := array_position(a.names, p_name);
  i integer;
begin
  if p_concurrency_key is not null and a.concurrency[n] is not null then
    i := array_position(l.k_names, p_concurrency_key);
    if l.k_active[i] >= a.concurrency[n] then return never(); end if;
  end if;
  if p_rate_key is null or a.rate_limits[n] is null then return a.now; end if;
  i := array_position(l.w_names, p_rate_key);
  return window_opens_at(a.now, a.rate_limits[n], a.rate_spans[n], l.w_started[i], l.w_used[i]);
end
$$;

-- How many more jobs of a queue this claim may take.
create function room_in(a ask, l limits, p_queue text) returns integer language plpgsql immutable as $$
declare
  i integer := array_position(l.q_names, p_queue);
  v_room integer := coalesce(l.a_left[array_position(a.queues, p_queue)], a.most + a.ahead);
begin
  if i is null then return v_room; end if;
  v_room := least(v_room, l.q_room[i]);
  if l.q_rates[i] is null then return v_room; end if;
  if l.q_started[i] is null or a.now < l.q_started[i] or a.now >= l.q_started[i] + l.q_spans[i] then return least(v_room, l.q_rates[i]); end if;
  return least(v_room, l.q_rates[i] - l.q_used[i]);
end
$$;

-- Counts a claim against the limits of its queue and keys.
create function count_claim(a ask, l limits, p_queue text, p_name text, p_concurrency_key text, p_rate_key text) returns limits
language plpgsql immutable as $$
declare
  n integer := array_position(a.names, p_name);
  i integer := array_position(l.q_names, p_queue);
begin
  if i is not null then
    l.q_room[i] := l.q_room[i] - 1;
    if l.q_rates[i] is not null then
      if l.q_started[i] is null or a.now < l.q_started[i] or a.now >= l.q_started[i] + l.q_spans[i] then
        l.q_started[i] := a.now;
        l.q_used[i] := 0;
      end if;
      l.q_used[i] := l.q_used[i] + 1;
    end if;
  end if;
  i := array_position(a.queues, p_queue);
  if i is not null then l.a_left[i] := l.a_left[i] - 1; end if;
  i := array_position(l.k_names, p_concurrency_key);
  if i is not null then l.k_active[i] := l.k_active[i] + 1; end if;
  i := array_position(l.w_names, p_rate_key);
  if i is not null and a.rate_limits[n] is not null then
    if l.w_started[i] is null or a.now < l.w_started[i] or a.now >= l.w_started[i] + a.rate_spans[n] then
      l.w_started[i] := a.now;
      l.w_used[i] := 0;
    end if;
    l.w_used[i] := l.w_used[i] + 1;
  end if;
  return l;
end
$$;

-- Writes the windows that claims of these jobs, which are locked and not held yet, will have used. The caller has also locked the queues' rows
-- and the keys' windows. Index: jobs_pkey.
create function write_windows(a ask, p_seqs bigint[]) returns void language plpgsql as $$
begin
  with taken as materialized (
    select j.* from unnest(p_seqs) as s cross join lateral (select queue, name, rate_key from jobs where seq = s offset 0) j
  )
  insert into windows (ns, kind, key, started_at, used, per_ms)
  select a.ns, used.kind, used.key, a.now, used.times, used.per_ms from (
    select 'queue' as kind, j.queue as key, q.rate_per_ms as per_ms, count(*)::integer as times
    from taken j join queues q on q.ns = a.ns and q.queue = j.queue and q.rate_limit is not null
    group by j.queue, q.rate_per_ms
    union all
    select 'key', j.rate_key, min(a.rate_spans[array_position(a.names, j.name)]), count(*)::integer from taken j
    where j.rate_key is not null and a.rate_limits[array_position(a.names, j.name)] is not null
    group by j.rate_key
  ) used
  on conflict (ns, kind, key) do update set
    started_at = case when windows.started_at > a.now or a.now >= windows.started_at + excluded.per_ms then a.now else windows.started_at end,
    used = case when windows.started_at > a.now or a.now >= windows.started_at + excluded.per_ms then 0 else windows.used end + excluded.used,
    per_ms = excluded.per_ms;
end
$$;

-- Reads the windows of rate keys, and counts the active jobs of concurrency keys. p_lock: the windows are locked in the order of their
-- names, and the caller holds the lanes of the concurrency keys. Index: windows_pkey, active_key.
create function read_keys(a ask, l limits, p_concurrency_keys text[], p_rate_keys text[], p_lock boolean) returns limits language plpgsql as $$
declare
  v_highest integer := (select max(c) from unnest(a.concurrency) as c);
begin
  if p_lock then
    insert into windows (ns, kind, key, started_at, used, per_ms)
    select a.ns, 'key', k, 0, 0, 0 from (select distinct unnest(p_rate_keys) as k) keys where k is not null order by k
    on conflict do nothing;
    perform from (select distinct unnest(p_rate_keys) as k order by 1) keys cross join lateral (
      select from windows where ns = a.ns and kind = 'key' and key = k offset 0 for update) w;
  end if;
  select coalesce(array_agg(k), '{}'), array_agg(case when w.per_ms > 0 then w.started_at end), array_agg(w.used)
  into l.w_names, l.w_started, l.w_used from (select distinct unnest(p_rate_keys) as k) keys cross join lateral (
    select started_at, used, per_ms from windows where ns = a.ns and kind = 'key' and key = k offset 0) w;
  -- Names may share a key with different limits; counting beyond the highest is useless.
  select coalesce(array_agg(k), '{}'), array_agg((
    select count(*)::integer from (
      select from active x where x.ns = a.ns and x.concurrency_key = k and x.concurrency_key is not null and not x.relayed limit v_highest
    ) active))
  into l.k_names, l.k_active from (select distinct unnest(p_concurrency_keys) as k) keys where k is not null;
  return l;
end
$$;
