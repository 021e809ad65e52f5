-- How claims and jobs end. What follows from an outcome is `settle` of src/state.ts, said once more here because it must be
-- decided inside the script; the random comparison with the memory store holds the two together.

local outcomes = { succeed = 1, retry = 2, snooze = 3, release = 4, rollback = 5, die = 6, lose = 7, crash = 8, succeedWithout = 9 }
local lines = { failed = 1, crashed = 2, snoozed = 3, rolledBack = 4, cancelRequested = 5, updated = 6, redriven = 7, log = 8, notKept = 9 }

-- A job that may have been dispatched must not go again when its guarantee forbids it.
local function isRefused(job, kind)
  return tailOf(job)[DELIVERY] == ATMOSTONCE and (kind == outcomes.retry or kind == outcomes.snooze or kind == outcomes.rollback)
end

-- The state and the reason that follow from how a claim ended.
local function decide(job, kind, reason)
  local state, why
  if kind == outcomes.succeed then return SUCCEEDED, nil end
  if kind == outcomes.succeedWithout then return SUCCEEDED, reason end
  if kind == outcomes.die then
    state, why = DEAD, reason
  elseif kind == outcomes.lose then
    state, why = LOST, reason
  elseif kind == outcomes.crash then
    if tailOf(job)[DELIVERY] == ATMOSTONCE then
      state, why = LOST, reason
    elseif job[CRASHES] >= job[MAXCRASHES] then
      state, why = DEAD, "poison: " .. reason .. " (crash " .. job[CRASHES] .. ")"
    else
      state, why = WAITING, reason
    end
  else
    state = WAITING
  end
  if job[CANCEL] == 1 then return CANCELLED, hasRare(job) and rareOf(job).reason or "cancelled while active" end
  return state, why
end

local function setReason(job, reason)
  if reason or (hasRare(job) and rareOf(job).reason) then changeRare(job).reason = reason end
end

local function orphanReason(parent)
  return "its parent " .. parent.id .. " is " .. stateNames[parent[STATE]]
end

local function writeCancelled(job, reason)
  leave(job)
  if job[STATE] == BLOCKED then
    local key = P .. "parents:" .. job.id
    for _, parent in ipairs(call("SMEMBERS", key)) do call("ZREM", P .. "children:" .. parent, job.id) end
    call("DEL", key)
  end
  job[STATE] = CANCELLED
  job[FINISHEDAT] = now
  setReason(job, reason)
  enter(job)
end

-- Returns whether the child ended, too.
local function hearEnd(child, parent)
  if parent[STATE] ~= SUCCEEDED and not rareOf(child).runAfterFailure then
    writeCancelled(child, orphanReason(parent))
    return true
  end
  local key = P .. "parents:" .. child.id
  call("SREM", key, parent.id)
  if call("SCARD", key) == 0 then
    leave(child)
    child[STATE] = WAITING
    enter(child)
  end
  return false
end

-- Tells the end of a job to those that wait for it, and theirs to those that wait for them, without recursion.
local function tellChildren(ended)
  local news, turn = { ended }, 0
  while turn < #news do
    turn = turn + 1
    local parent = news[turn]
    notices.ended[#notices.ended + 1] = parent.id
    if parent[PARENT] == 1 then
      local key = P .. "children:" .. parent.id
      local ids = call("ZRANGE", key, 0, -1)
      readJobs(ids)
      for _, id in ipairs(ids) do
        local child = jobOf(id)
        if child and hearEnd(child, parent) then news[#news + 1] = child end
      end
      call("DEL", key)
      parent[PARENT] = 0
      changed[parent.id] = parent
    end
  end
end

-- Cancels a job that nobody holds.
local function cancelIdle(job, reason)
  writeCancelled(job, reason)
  tellChildren(job)
end

local stories = {
  [outcomes.retry] = lines.failed,
  [outcomes.die] = lines.failed,
  [outcomes.crash] = lines.crashed,
  [outcomes.snooze] = lines.snoozed,
  [outcomes.rollback] = lines.rolledBack,
  [outcomes.succeedWithout] = lines.notKept,
}

-- Ends a claim. `text` is the result of a success, else the reason; `err` the error. Each is "" where there is none.
local function settleClaim(job, kind, delayMs, text, err)
  local reason = kind ~= outcomes.succeed and text or nil
  if stories[kind] then
    local isTold = kind == outcomes.die or kind == outcomes.crash or kind == outcomes.succeedWithout
    tell(job, stories[kind], isTold and reason or nil, err ~= "" and err or nil)
  end
  leave(job)
  if kind == outcomes.crash then job[CRASHES] = job[CRASHES] + 1 end
  local state, why = decide(job, kind, reason)
  if kind == outcomes.snooze or kind == outcomes.release or kind == outcomes.rollback then job[ATTEMPT] = job[ATTEMPT] - 1 end
  if kind == outcomes.rollback then
    local tail = changeTail(job)
    tail[ROLLBACKS] = tail[ROLLBACKS] + 1
  end
  if state == WAITING and delayMs >= 0 then job[RUNAT] = now + delayMs end
  if err ~= "" then changeRare(job).error = err end
  setReason(job, why)
  job[STATE] = state
  job[RESULT] = kind == outcomes.succeed and text or ""
  job[FINISHEDAT] = isTerminal(state) and now or huge
  enter(job)
  if isTerminal(state) then tellChildren(job) end
end
