-- How claims and jobs end. What follows from an outcome is decided in policy.lua.

-- What a line of the trail is, by number.
local lines = {
  failed = 1,
  crashed = 2,
  snoozed = 3,
  ["rolled-back"] = 4,
  cancelRequested = 5,
  updated = 6,
  redriven = 7,
  log = 8,
  ["result-not-kept"] = 9,
}

-- Why the cancellation of an active job was requested, if that was said.
local function requestedReason(job)
  return job[CANCEL] == 1 and hasRare(job) and rareOf(job).reason or nil
end

local function decideFor(job, kind, reason)
  return decide(kind, reason, job[CANCEL] == 1, requestedReason(job), tailOf(job)[DELIVERY], job[CRASHES], job[MAXCRASHES])
end

local function setReason(job, reason)
  if reason or (hasRare(job) and rareOf(job).reason) then changeRare(job).reason = reason end
end

local function writeCancelled(job, reason)
  leave(job)
  if job[STATE] == BLOCKED then
    local key = P .. "parents:" .. job.id
    for _, parent in ipairs(call("SMEMBERS", key)) do
      call("ZREM", P .. "children:" .. parent, job.id)
    end
    call("DEL", key)
  end
  job[STATE] = CANCELLED
  job[FINISHEDAT] = now
  setReason(job, reason)
  enter(job)
end

-- Returns whether the child ended, too.
local function hearEnd(child, parent)
  if isOrphan(rareOf(child).runAfterFailure, parent[STATE]) then
    writeCancelled(child, orphanReason(parent.id, stateNames[parent[STATE]]))
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

-- Passes the end of a job on to its children, and theirs to their children, without recursion.
local function tellChildren(ended)
  local parents, turn = { ended }, 0
  while turn < #parents do
    turn = turn + 1
    local parent = parents[turn]
    notices.ended[#notices.ended + 1] = parent.id
    if parent[PARENT] == 1 then
      local key = P .. "children:" .. parent.id
      local ids = call("ZRANGE", key, 0, -1)
      readJobs(ids)
      for _, id in ipairs(ids) do
        local child = jobOf(id)
        if child and hearEnd(child, parent) then parents[#parents + 1] = child end
      end
      call("DEL", key)
      parent[PARENT] = 0
      changed[parent.id] = parent
    end
  end
end

-- Cancels a job that is not claimed.
local function cancelIdle(job, reason)
  writeCancelled(job, reason)
  tellChildren(job)
end

-- Ends a claim. `text` is the result of a success, else the reason; `err` the error. Each is "" if there is none.
local function settleClaim(job, kind, delayMs, text, err)
  local state, why, attempts, crashes, rollbacks, isDelayed, keepsError, keepsResult, story, tellsReason, tellsError =
    decideFor(job, kind, text)
  if story then tell(job, lines[story], tellsReason and text or nil, tellsError and err ~= "" and err or nil) end
  leave(job)
  job[ATTEMPT], job[CRASHES] = job[ATTEMPT] + attempts, job[CRASHES] + crashes
  if rollbacks > 0 then
    local tail = changeTail(job)
    tail[ROLLBACKS] = tail[ROLLBACKS] + rollbacks
  end
  if isDelayed and delayMs >= 0 then job[RUNAT] = now + delayMs end
  if keepsError and err ~= "" then changeRare(job).error = err end
  setReason(job, why)
  job[STATE] = state
  job[RESULT] = keepsResult and text or ""
  job[FINISHEDAT] = isTerminal(state) and now or huge
  enter(job)
  if isTerminal(state) then tellChildren(job) end
end
