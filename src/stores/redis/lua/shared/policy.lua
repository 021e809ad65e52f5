-- Made from src/state.ts by `npm run generate`; do not edit. Change state.ts instead.

local SUCCEED, RETRY, SNOOZE, RELEASE, ROLLBACK, DIE, LOSE, CRASH, SUCCEEDWITHOUT = 1, 2, 3, 4, 5, 6, 7, 8, 9

-- Decides the next state of a held job (settle and story in state.ts). `reason` is that of the outcome, `requested` why its cancellation was requested.
-- Returns state, reason, what to add to attempt, crashes and rollbacks, whether the delay, the error and the result that were given are kept,
-- the line of the trail and whether it has the reason and the error. Nil where such an outcome is refused.
local function decide(kind, reason, isCancelled, requested, delivery, crashes, maxCrashes)
  if kind == SUCCEED then
    return SUCCEEDED, nil, 0, 0, 0, false, false, true, nil, false, false
  elseif kind == RETRY then
    if delivery == ATMOSTONCE then return nil end
    if isCancelled and requested then return CANCELLED, requested, 0, 0, 0, false, true, false, "failed", false, true end
    if isCancelled then return CANCELLED, "cancelled while active", 0, 0, 0, false, true, false, "failed", false, true end
    return WAITING, nil, 0, 0, 0, true, true, false, "failed", false, true
  elseif kind == SNOOZE then
    if delivery == ATMOSTONCE then return nil end
    if isCancelled and requested then return CANCELLED, requested, -1, 0, 0, false, false, false, "snoozed", false, false end
    if isCancelled then return CANCELLED, "cancelled while active", -1, 0, 0, false, false, false, "snoozed", false, false end
    return WAITING, nil, -1, 0, 0, true, false, false, "snoozed", false, false
  elseif kind == RELEASE then
    if isCancelled and requested then return CANCELLED, requested, -1, 0, 0, false, true, false, nil, false, false end
    if isCancelled then return CANCELLED, "cancelled while active", -1, 0, 0, false, true, false, nil, false, false end
    return WAITING, nil, -1, 0, 0, true, true, false, nil, false, false
  elseif kind == ROLLBACK then
    if delivery == ATMOSTONCE then return nil end
    if isCancelled and requested then return CANCELLED, requested, -1, 0, 1, false, true, false, "rolled-back", false, true end
    if isCancelled then return CANCELLED, "cancelled while active", -1, 0, 1, false, true, false, "rolled-back", false, true end
    return WAITING, nil, -1, 0, 1, true, true, false, "rolled-back", false, true
  elseif kind == DIE then
    if isCancelled and requested then return CANCELLED, requested, 0, 0, 0, false, true, false, "failed", true, true end
    if isCancelled then return CANCELLED, "cancelled while active", 0, 0, 0, false, true, false, "failed", true, true end
    return DEAD, reason, 0, 0, 0, false, true, false, "failed", true, true
  elseif kind == LOSE then
    if isCancelled and requested then return CANCELLED, requested, 0, 0, 0, false, false, false, nil, false, false end
    if isCancelled then return CANCELLED, "cancelled while active", 0, 0, 0, false, false, false, nil, false, false end
    return LOST, reason, 0, 0, 0, false, false, false, nil, false, false
  elseif kind == CRASH then
    if delivery == ATMOSTONCE and isCancelled and requested then
      return CANCELLED, requested, 0, 1, 0, false, false, false, "crashed", true, false
    end
    if delivery == ATMOSTONCE and isCancelled then
      return CANCELLED, "cancelled while active", 0, 1, 0, false, false, false, "crashed", true, false
    end
    if delivery == ATMOSTONCE then return LOST, reason, 0, 1, 0, false, false, false, "crashed", true, false end
    if isCancelled and requested then return CANCELLED, requested, 0, 1, 0, false, false, false, "crashed", true, false end
    if isCancelled then return CANCELLED, "cancelled while active", 0, 1, 0, false, false, false, "crashed", true, false end
    if maxCrashes - crashes <= 1 then
      return DEAD, "poison: " .. reason .. " (crash " .. (crashes + 1) .. ")", 0, 1, 0, false, false, false, "crashed", true, false
    end
    return WAITING, reason, 0, 1, 0, false, false, false, "crashed", true, false
  elseif kind == SUCCEEDWITHOUT then
    return SUCCEEDED, reason, 0, 0, 0, false, false, false, "result-not-kept", true, false
  end
  error("there is no outcome of the kind " .. tostring(kind))
end

-- isFragile in state.ts.
local function isFragileAfter(crashes, maxCrashes)
  if crashes > 0 and maxCrashes - crashes <= 1 then return true end
  return false
end

-- mayClaimAhead in state.ts.
local function mayClaimAhead(delivery, isKeyed, crashes, isAhead)
  if delivery == ATMOSTONCE then return false end
  if isKeyed then return false end
  if crashes > 0 then return false end
  if isAhead then return false end
  return true
end

-- silence in state.ts: the outcome and its reason.
local function silenceOf(isAhead)
  if isAhead then return RELEASE, nil end
  return CRASH, "its lease ran out"
end

-- isOrphan in state.ts.
local function isOrphan(runsAfterFailure, parentState)
  return not runsAfterFailure and (parentState == DEAD or parentState == LOST or parentState == CANCELLED)
end

-- orphanReason in state.ts.
local function orphanReason(id, state)
  return "its parent " .. id .. " is " .. state
end

-- expiredReason in state.ts.
local expiredReason = "expired"
