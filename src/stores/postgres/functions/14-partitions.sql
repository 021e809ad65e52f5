-- Partitions of the relay, and the jobs that it fires.

-- Whether a node holds a partition. No lease is longer than p_longest_ms: one that seems to be is damaged, and counts as expired.
create function is_held(p_partition partitions, p_now bigint, p_longest_ms bigint) returns boolean language sql immutable as $$
  select coalesce(p_partition.owner is not null and p_partition.lease_until > p_now and p_partition.lease_until <= p_now + p_longest_ms, false)
$$;

-- Creates the partitions, or more of them once none is held. Returns whether there are as many as there should be; a row whose number is
-- out of range does not count.
create function cut_partitions(p_ns integer, p_now bigint, p_longest_ms bigint, p_slots integer, p_partitions integer)
returns boolean language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_wanted integer;
  v_made integer;
  v_held integer;
  v_epoch integer;
begin
  select n.partition_count, count(p.partition) filter (where p.partition >= 0 and p.partition < n.partition_count),
    count(p.partition) filter (where is_held(p, v_now, p_longest_ms))
  into v_wanted, v_made, v_held from namespaces n left join partitions p on p.ns = n.ns where n.ns = p_ns group by n.ns;
  if v_made = v_wanted and p_partitions <= v_wanted then return true; end if;
  if p_partitions > v_wanted then
    update namespaces set partition_count = greatest(partition_count, p_partitions) where ns = p_ns;
  end if;
  -- Without a lock: while held partitions must be waited for, acquiring must not block renewals.
  if v_held > 0 then return false; end if;
  -- Other nodes that want to cut wait here, and then find it done; a grant in progress holds its rows.
  select partition_count into v_wanted from namespaces where ns = p_ns for update;
  perform from partitions where ns = p_ns order by partition for update;
  select count(*) filter (where partition >= 0 and partition < v_wanted), count(*) filter (where is_held(p, v_now, p_longest_ms)),
    coalesce(max(epoch), 0)
  into v_made, v_held, v_epoch from partitions p where ns = p_ns;
  if v_made = v_wanted then return true; end if;
  if v_held > 0 then return false; end if;
  delete from partitions where ns = p_ns;
  -- No epoch of any partition is used twice, so a holder from before the cut is stale after it.
  insert into partitions (ns, partition, first_slot, end_slot, epoch)
  select p_ns, i, i * p_slots / v_wanted, (i + 1) * p_slots / v_wanted, v_epoch from generate_series(0, v_wanted - 1) as i;
  return true;
end
$$;

-- Takes partitions that are free or whose lease ran out, with the jobs that an earlier owner had named there.
-- Returns a list of [partition, epoch, first slot, end slot, mark, named jobs].
create function acquire_partitions(
  p_ns integer, p_now bigint, p_owner text, p_lease_ms bigint, p_longest_ms bigint, p_slots integer, p_partitions integer, p_want integer
) returns json language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_partition record;
  v_seqs bigint[];
  v_named json;
  v_grants json[] := '{}';
begin
  if not cut_partitions(p_ns, p_now, p_longest_ms, p_slots, p_partitions) then return '[]'; end if;
  -- The slots are computed from the number of partitions, since the row may be damaged. The same statement reads that number: another node
  -- may have asked for more, or cut again, since cut_partitions looked.
  for v_partition in
    -- An epoch that cannot rise is damaged, and counts from 1 again: writes are fenced by owner and epoch together.
    select p.partition, case when p.epoch < 1000000000 then p.epoch + 1 else 1 end as epoch, p.mark, p.partition * p_slots / n.partition_count as first_slot,
      (p.partition + 1) * p_slots / n.partition_count as end_slot
    from namespaces n join partitions p on p.ns = n.ns and p.partition >= 0 and p.partition < n.partition_count
    where n.ns = p_ns and not is_held(p, v_now, p_longest_ms) and n.partition_count = (
      select count(*) from partitions c where c.ns = p_ns and c.partition >= 0 and c.partition < n.partition_count)
    order by p.partition limit greatest(p_want, 0) for update of p skip locked
  loop
    update partitions set first_slot = v_partition.first_slot, end_slot = v_partition.end_slot,
      owner = p_owner, epoch = v_partition.epoch, lease_until = v_now + p_lease_ms
    where ns = p_ns and partition = v_partition.partition;
    v_seqs := array(
      select seq from active where relayed and ns = p_ns and slot >= v_partition.first_slot and slot < v_partition.end_slot order by slot for update);
    update active set claimer = p_owner, claimed_at = v_now, token = risen(token)
    where seq = any (v_seqs);
    select coalesce(json_agg(claimed_json(j) order by j.run_at, j.seq), '[]') into v_named from unnest(v_seqs) as s
    cross join lateral (select * from all_jobs where seq = s offset 0) j;
    v_grants := v_grants || json_build_array(
      v_partition.partition, v_partition.epoch, v_partition.first_slot, v_partition.end_slot, v_partition.mark, v_named);
  end loop;
  return to_json(v_grants);
end
$$;

-- The first waiting jobs of a partition by time, after (p_after_at, p_after_seq): p_limit of those due by now + p_ahead_ms. A little is read from
-- each slot and merged, then more if that was too little, so a long backlog is never sorted. Returns {now, jobs, last, nextAt}; last is
-- [run_at, seq] of the last of the jobs, or empty. Index: jobs_relay.
create function partition_due(p_ns integer, p_now bigint, p_partition integer, p_ahead_ms bigint, p_limit integer, p_after_at bigint, p_after_seq bigint)
returns json
language plpgsql as $$
declare
  v_now bigint := now_ms(p_now);
  v_slots integer[];
  v_mean float8;
  v_chunk integer;
  v_known bigint;
  v_seqs bigint[];
  v_next bigint;
begin
  v_slots := array(
    with recursive occupied as (
      (select j.slot, p.end_slot from partitions p cross join lateral (
         select slot from jobs where shelf = 'relay' and ns = p_ns and slot >= p.first_slot and slot < p.end_slot order by slot limit 1) j
       where p.ns = p_ns and p.partition = p_partition)
      union all
      select next.slot, o.end_slot from occupied o cross join lateral (
        select slot from jobs where shelf = 'relay' and ns = p_ns and slot > o.slot and slot < o.end_slot order by slot limit 1) next
    ) select slot from occupied);
  -- This many from each: if all slots have about as many jobs, hardly any has more among the first.
  v_mean := p_limit::float8 / greatest(1, cardinality(v_slots));
  v_chunk := ceil(v_mean + 3 * sqrt(v_mean) + 1);
  loop
    with read as materialized (
      select j.seq, j.run_at, j.nth from unnest(v_slots) as s cross join lateral (
        select seq, run_at, row_number() over (order by run_at, seq) as nth from (
          -- One that a checkpoint would leave out each time must not be offered again and again.
          select seq, run_at from jobs where shelf = 'relay' and ns = p_ns and slot = s and relayed and not blocked
            and (run_at, seq) > (p_after_at, p_after_seq) and (expire_at is null or expire_at > v_now or attempt > 0)
          order by run_at, seq limit v_chunk) first) j
    ), known as (
      -- Beyond the last job read from a slot, there may be more.
      select min(run_at) as at from read where nth = v_chunk
    ), placed as (
      select r.seq, r.run_at, row_number() over (order by r.run_at, r.seq) as place from read r cross join known k
      where k.at is null or r.run_at < k.at or v_chunk > p_limit
    )
    select array_agg(seq order by place) filter (where place <= p_limit and run_at <= v_now + p_ahead_ms),
      min(run_at) filter (where place > p_limit or run_at > v_now + p_ahead_ms), (select at from known)
    into v_seqs, v_next, v_known from placed;
    exit when v_known is null or v_chunk > p_limit or v_next is not null;
    v_chunk := v_chunk * 4;
  end loop;
  return json_build_object('now', v_now, 'nextAt', v_next, 'last', coalesce((
    select json_build_array(j.run_at, j.seq) from jobs j where j.seq = v_seqs[cardinality(v_seqs)]), '[]'), 'jobs', (
    select coalesce(json_agg(json_build_array(j.id, j.name, j.queue, j.delivery, j.run_at, j.token, j.version) order by j.run_at, j.seq), '[]')
    from jobs j where j.seq = any (v_seqs)));
end
$$;

-- Locks a partition that the owner still holds under this epoch and returns its slots; nothing when it is stale.
create function own_partition(p_ns integer, p_owner text, p_partition integer, p_epoch integer, out v_first integer, out v_end integer)
language plpgsql as $$
begin
  select first_slot, end_slot into v_first, v_end from partitions
  where ns = p_ns and partition = p_partition and epoch = p_epoch and owner = p_owner for update;
end
$$;

-- Settles the named batch, moves the mark and names the next batch, all under the lock of the partition's row. p_endings: in the form of finish_any;
-- null: all have succeeded without a result, and there are no duplicate ids. Returns null when it is stale, else {finished, named};
-- finished is what finish_any, or finish_succeeded, returns.
create function checkpoint_partition(
  p_ns integer, p_now bigint, p_owner text, p_partition integer, p_epoch integer, p_mark bigint, p_ids text[], p_tokens integer[],
  p_endings json, p_name_ids text[], p_name_versions integer[], p_ahead_ms bigint
) returns json language plpgsql as $$
declare
  v_slots record := own_partition(p_ns, p_owner, p_partition, p_epoch);
  v_now bigint := now_ms(p_now);
  v_finished json;
  v_named json := '[]';
  v_fresh bigint[];
  v_all bigint[];
begin
  if v_slots.v_first is null then return null; end if;
  if p_ids <> '{}' then
    if p_endings is null then
      v_finished := finish_succeeded(p_ns, p_now, p_owner, v_slots.v_first, v_slots.v_end, seqs_of(p_ns, p_ids), p_tokens, null);
    else
      v_finished := finish_any(p_ns, p_now, p_owner, v_slots.v_first, v_slots.v_end, p_ids, p_tokens, p_endings);
    end if;
  end if;
  if p_mark is not null then
    update partitions set mark = p_mark where ns = p_ns and partition = p_partition;
  end if;
  if p_name_ids <> '{}' then
    perform from (select distinct id from unnest(p_name_ids) as id order by id) n
    cross join lateral (select from jobs where ns = p_ns and id = n.id offset 0 for no key update) j;
    with found as materialized (
      select j.seq, j.id, j.version, j.state
      from (select distinct id, version from unnest(p_name_ids, p_name_versions) as n (id, version)) n
      cross join lateral (select seq from jobs where ns = p_ns and id = n.id offset 0) s
      cross join lateral (select * from all_jobs where seq = s.seq offset 0) j
      where j.version = n.version and j.relayed and j.slot >= v_slots.v_first and j.slot < v_slots.v_end
        and case when j.state = 'active' then j.claimer = p_owner
          else j.state = 'waiting' and j.run_at <= v_now + p_ahead_ms and (j.expire_at is null or j.expire_at > v_now or j.attempt > 0) end
    )
    select array_agg(seq) filter (where state = 'waiting'), array_agg(seq) into v_fresh, v_all from found;
    if v_fresh <> '{}' then
      insert into active (seq, claimed_at, ns, attempt, token, slot, ahead, relayed, queue, name, claimer, concurrency_key, retention)
      select j.seq, v_now, p_ns, risen(j.attempt), risen(j.token), j.slot, false, true, j.queue, j.name, p_owner, j.concurrency_key, j.retention
      from unnest(v_fresh) as s cross join lateral (select * from jobs where seq = s offset 0) j;
      update jobs set shelf = null where seq = any (v_fresh);
      if exists (select from untried where ns = p_ns) then delete from untried where seq = any (v_fresh); end if;
    end if;
    -- A job that was named before and is not settled is returned again as it is.
    with named as (
      select j.id, j.version, claimed_json(j) as told from unnest(v_all) as s cross join lateral (select * from all_jobs where seq = s offset 0) j
    )
    select coalesce(json_agg(told order by place), '[]') into v_named
    from unnest(p_name_ids, p_name_versions) with ordinality as n (id, version, place) join named using (id, version);
  end if;
  return json_build_object('finished', v_finished, 'named', v_named);
end
$$;
