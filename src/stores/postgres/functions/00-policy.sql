-- Made from src/state.ts by `npm run generate`; do not edit. Change state.ts instead.

-- What a store writes when a claim ends. attempt_change, crash_change and rollbacks are added; is_delayed: the delay that was given moves the
-- job's time; keeps_error, keeps_result: what was given is kept. story: the line of the trail, with the reason or the error that was given.
create type decision as (
  state text, reason text, attempt_change integer, crash_change integer, rollbacks integer, is_delayed boolean, keeps_error boolean,
  keeps_result boolean, story text, tells_reason boolean, tells_error boolean
);

-- Decides the next state of a held job (settle and story in state.ts). p_reason: that of the outcome; p_requested: why its cancellation was requested.
-- Null where such an outcome is refused.
create function decide(
  p_kind text, p_reason text, p_cancelled boolean, p_requested text, p_delivery text, p_crashes integer, p_max_crashes integer
) returns decision language plpgsql immutable as $$
begin
  if p_kind = 'succeed' then
    return row('succeeded', null, 0, 0, 0, false, false, true, null, false, false)::decision;
  end if;
  if p_kind = 'retry' then
    if p_delivery = 'at-most-once' then
      return null;
    end if;
    if p_cancelled and p_requested is not null then
      return row('cancelled', p_requested, 0, 0, 0, false, true, false, 'failed', false, true)::decision;
    end if;
    if p_cancelled then
      return row('cancelled', 'cancelled while active', 0, 0, 0, false, true, false, 'failed', false, true)::decision;
    end if;
    return row('waiting', null, 0, 0, 0, true, true, false, 'failed', false, true)::decision;
  end if;
  if p_kind = 'snooze' then
    if p_delivery = 'at-most-once' then
      return null;
    end if;
    if p_cancelled and p_requested is not null then
      return row('cancelled', p_requested, -1, 0, 0, false, false, false, 'snoozed', false, false)::decision;
    end if;
    if p_cancelled then
      return row('cancelled', 'cancelled while active', -1, 0, 0, false, false, false, 'snoozed', false, false)::decision;
    end if;
    return row('waiting', null, -1, 0, 0, true, false, false, 'snoozed', false, false)::decision;
  end if;
  if p_kind = 'release' then
    if p_cancelled and p_requested is not null then
      return row('cancelled', p_requested, -1, 0, 0, false, true, false, null, false, false)::decision;
    end if;
    if p_cancelled then
      return row('cancelled', 'cancelled while active', -1, 0, 0, false, true, false, null, false, false)::decision;
    end if;
    return row('waiting', null, -1, 0, 0, true, true, false, null, false, false)::decision;
  end if;
  if p_kind = 'rollback' then
    if p_delivery = 'at-most-once' then
      return null;
    end if;
    if p_cancelled and p_requested is not null then
      return row('cancelled', p_requested, -1, 0, 1, false, true, false, 'rolled-back', false, true)::decision;
    end if;
    if p_cancelled then
      return row('cancelled', 'cancelled while active', -1, 0, 1, false, true, false, 'rolled-back', false, true)::decision;
    end if;
    return row('waiting', null, -1, 0, 1, true, true, false, 'rolled-back', false, true)::decision;
  end if;
  if p_kind = 'die' then
    if p_cancelled and p_requested is not null then
      return row('cancelled', p_requested, 0, 0, 0, false, true, false, 'failed', true, true)::decision;
    end if;
    if p_cancelled then
      return row('cancelled', 'cancelled while active', 0, 0, 0, false, true, false, 'failed', true, true)::decision;
    end if;
    return row('dead', p_reason, 0, 0, 0, false, true, false, 'failed', true, true)::decision;
  end if;
  if p_kind = 'lose' then
    if p_cancelled and p_requested is not null then
      return row('cancelled', p_requested, 0, 0, 0, false, false, false, null, false, false)::decision;
    end if;
    if p_cancelled then
      return row('cancelled', 'cancelled while active', 0, 0, 0, false, false, false, null, false, false)::decision;
    end if;
    return row('lost', p_reason, 0, 0, 0, false, false, false, null, false, false)::decision;
  end if;
  if p_kind = 'crash' then
    if p_delivery = 'at-most-once' and p_cancelled and p_requested is not null then
      return row('cancelled', p_requested, 0, 1, 0, false, false, false, 'crashed', true, false)::decision;
    end if;
    if p_delivery = 'at-most-once' and p_cancelled then
      return row('cancelled', 'cancelled while active', 0, 1, 0, false, false, false, 'crashed', true, false)::decision;
    end if;
    if p_delivery = 'at-most-once' then
      return row('lost', p_reason, 0, 1, 0, false, false, false, 'crashed', true, false)::decision;
    end if;
    if p_cancelled and p_requested is not null then
      return row('cancelled', p_requested, 0, 1, 0, false, false, false, 'crashed', true, false)::decision;
    end if;
    if p_cancelled then
      return row('cancelled', 'cancelled while active', 0, 1, 0, false, false, false, 'crashed', true, false)::decision;
    end if;
    if p_max_crashes - p_crashes <= 1 then
      return row('dead', 'poison: ' || p_reason || ' (crash ' || (p_crashes + 1) || ')', 0, 1, 0, false, false, false, 'crashed', true, false)::decision;
    end if;
    return row('waiting', p_reason, 0, 1, 0, false, false, false, 'crashed', true, false)::decision;
  end if;
  if p_kind = 'succeed-without' then
    return row('succeeded', p_reason, 0, 0, 0, false, false, false, 'result-not-kept', true, false)::decision;
  end if;
  raise exception 'there is no outcome of the kind %', p_kind;
end
$$;

-- isFragile in state.ts.
create function is_fragile(p_crashes integer, p_max_crashes integer) returns boolean language sql immutable as $$
  select case when p_crashes > 0 and p_max_crashes - p_crashes <= 1 then true else false end
$$;

-- mayClaimAhead in state.ts.
create function may_claim_ahead(p_delivery text, p_keyed boolean, p_crashes integer, p_ahead boolean) returns boolean language sql immutable as $$
  select case when p_delivery = 'at-most-once' then false when p_keyed then false when p_crashes > 0 then false when p_ahead then false else true end
$$;

-- idleStates, openStates and redrivableStates in state.ts.
create function is_idle(p_state text) returns boolean language sql immutable as $$ select p_state in ('blocked', 'waiting') $$;
create function is_open(p_state text) returns boolean language sql immutable as $$ select p_state in ('blocked', 'waiting', 'active') $$;
create function is_redrivable(p_state text) returns boolean language sql immutable as $$ select p_state in ('dead', 'lost') $$;

-- isOrphan in state.ts. Only 'run' keeps a child.
create function is_orphan(p_after_failure text, p_parent_state text) returns boolean language sql immutable as $$
  select p_after_failure is distinct from 'run' and p_parent_state in ('dead', 'lost', 'cancelled')
$$;

-- orphanReason in state.ts.
create function orphan_reason(p_id text, p_state text) returns text language sql immutable as $$
  select 'its parent ' || p_id || ' is ' || p_state
$$;

-- expiredReason in state.ts.
create function expired_reason() returns text language sql immutable as $$
  select 'expired'
$$;
