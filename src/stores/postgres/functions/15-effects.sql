-- The transaction that a handler's writes share with its job's success.

-- Begins the transaction of a claim: its first statement. Returns its number, null when the claim no longer belongs to the claimer.
-- A transaction still open for the same job belongs to a process that lost the claim or dropped the connection. It can no longer succeed, and its
-- locks would block this one for as long as its connection lasts: the server ends it. A role without that right leaves it alone.
-- Index: jobs_id, active_pkey.
create function begin_effect(p_ns integer, p_id text, p_token integer, p_claimer text) returns json language plpgsql as $$
declare
  v_seq bigint;
  v_class integer := 'jobs'::regclass::oid::bigint::bit(32)::integer;
  v_key integer;
begin
  select seq into v_seq from active
  where seq = (select seq from jobs where ns = p_ns and id = p_id) and token = p_token and claimer = p_claimer and not relayed;
  if v_seq is null then return null; end if;
  v_key := v_seq & 2147483647;
  if not pg_try_advisory_xact_lock(v_class, v_key) then
    begin
      perform pg_terminate_backend(l.pid) from pg_locks l join pg_database d on d.oid = l.database
      where d.datname = current_database() and l.locktype = 'advisory' and l.classid = 'jobs'::regclass::oid and l.objid = v_key::oid
        and l.objsubid = 2 and l.granted and l.pid <> pg_backend_pid();
      perform pg_advisory_xact_lock(v_class, v_key);
    exception when insufficient_privilege or lock_not_available then
      null;
    end;
  end if;
  return to_json(txid_current()::text);
end
$$;

-- Ends a claim as succeeded inside that transaction: its last statement before the commit, which is in the same message. Nothing else locks
-- the row, so no client can hold on to it. What must not be committed raises: ES003 when the claim no longer belongs to the claimer, ES004 when
-- the transaction is another one: nothing would tie the success to the caller's writes. p_endings: null for a plain success; else a list with
-- the one ending, in the form of finish_any. Index: jobs_id, active_pkey.
create function succeed_effect(
  p_ns integer, p_now bigint, p_transaction text, p_id text, p_token integer, p_claimer text, p_result text, p_endings json
) returns json language plpgsql as $$
declare
  v_answer json;
begin
  if txid_current()::text <> p_transaction then
    raise exception 'the transaction was ended before' using errcode = 'ES004';
  end if;
  if p_endings is null then
    v_answer := finish_succeeded(p_ns, p_now, p_claimer, null, null, seqs_of(p_ns, array[p_id]), array[p_token], array[p_result]);
  else
    v_answer := finish_any(p_ns, p_now, p_claimer, null, null, array[p_id], array[p_token], p_endings);
  end if;
  if v_answer ->> 'missed' is not null or v_answer #>> '{results,0,0}' <> 'written' then
    raise exception 'the claim has ended' using errcode = 'ES003';
  end if;
  return v_answer -> 'notices';
end
$$;
