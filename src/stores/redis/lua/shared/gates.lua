-- Jobs with a concurrency key, or else a rate key, wait in a lane, whatever their queue and name. Each queue and name that has
-- jobs in a lane sees it through its own gate, which says when looking may find a job.
--
--   lanes:<priority>:<lane>     sorted set of its jobs with one priority, by runAt, then seq
--   lane:<lane>                 sorted set of its priorities, by the earliest runAt in each
--   gates:<queue>␟<name>        sorted set of lanes, by when they may be ready; closed ones are not in it
--   full:<name>                 sorted set of <queue>␟<lane>: closed because this many jobs with the key were active, the score; while there
--                               is any, names:<name> says so
--   gatesof:<lane>              hash of <queue>␟<name>: "open", "full", or "behind" a job that is not the gate's own

local function laneOf(job)
  local rare = rareOf(job)
  return rare.concurrencyKey and "c" .. rare.concurrencyKey or "r" .. (rare.rateKey or "")
end

local function laneListKey(priority, lane)
  return P .. "lanes:" .. priority .. ":" .. lane
end

local function splitGate(gate)
  local at = string.find(gate, SEPARATOR, 1, true)
  if not at then return gate, "" end
  return string.sub(gate, 1, at - 1), string.sub(gate, at + 1)
end

local function setGate(lane, gate, readyAt)
  local queue, name = splitGate(gate)
  call("ZADD", P .. "gates:" .. gate, readyAt, lane)
  call("HSET", P .. "gatesof:" .. lane, gate, "open")
  call("ZADD", P .. "names:" .. name, "LT", readyAt, GATES .. queue)
end

-- Nothing behind the gate can go before the lane changes.
local function closeBehind(lane, gate)
  call("ZREM", P .. "gates:" .. gate, lane)
  call("HSET", P .. "gatesof:" .. lane, gate, "behind")
end

-- As many jobs with the lane's key are active as the claimer allows.
local function closeFull(lane, gate, limit)
  local queue, name = splitGate(gate)
  call("ZREM", P .. "gates:" .. gate, lane)
  call("ZADD", P .. "full:" .. name, limit, queue .. SEPARATOR .. lane)
  call("ZADD", P .. "names:" .. name, 0, FULL)
  call("HSET", P .. "gatesof:" .. lane, gate, "full")
end

local function leaveFull(lane, gate)
  local queue, name = splitGate(gate)
  local removed = call("ZREM", P .. "full:" .. name, queue .. SEPARATOR .. lane)
  if removed == 1 and call("EXISTS", P .. "full:" .. name) == 0 then call("ZREM", P .. "names:" .. name, FULL) end
end

-- No more jobs wait behind the gate.
local function removeGate(lane, gate)
  call("ZREM", P .. "gates:" .. gate, lane)
  leaveFull(lane, gate)
  call("HDEL", P .. "gatesof:" .. lane, gate)
end

local function gatesOf(lane)
  local list = call("HGETALL", P .. "gatesof:" .. lane)
  local gates = {}
  for n = 1, #list, 2 do
    gates[list[n]] = list[n + 1]
  end
  return gates
end

-- An active job with the lane's key ended: there may be room again.
local function openFull(lane)
  for gate, status in pairs(gatesOf(lane)) do
    if status == "full" then
      leaveFull(lane, gate)
      setGate(lane, gate, now)
    end
  end
end

-- A job left the lane or changed its place: another may be first now. Looking is cheap, missing it is not.
local function openChanged(lane)
  for gate, status in pairs(gatesOf(lane)) do
    if status == "behind" then
      setGate(lane, gate, now)
    elseif status == "open" then
      local _, name = splitGate(gate)
      call("ZADD", P .. "gates:" .. gate, "LT", now, lane)
      call("ZADD", P .. "names:" .. name, "LT", now, GATES .. splitGate(gate))
    end
  end
end

-- Lanes that a job left, and lanes whose key was freed; passed to their gates at the end.
local changedLanes, freedLanes = {}, {}

local function joinLane(job)
  local lane, tail = laneOf(job), tailOf(job)
  local gate = tail[QUEUE] .. SEPARATOR .. tail[NAME]
  call("ZADD", laneListKey(job[PRIORITY], lane), job[RUNAT], memberOf(job))
  call("ZADD", P .. "lane:" .. lane, "LT", job[RUNAT], job[PRIORITY])
  local status = call("HGET", P .. "gatesof:" .. lane, gate)
  if status == "full" then return end
  call("ZADD", P .. "gates:" .. gate, "LT", job[RUNAT], lane)
  if status ~= "open" then call("HSET", P .. "gatesof:" .. lane, gate, "open") end
  lower(P .. "names:" .. tail[NAME], GATES .. tail[QUEUE], job[RUNAT])
end

local function leaveLane(job)
  local lane = laneOf(job)
  call("ZREM", laneListKey(job[PRIORITY], lane), memberOf(job))
  changedLanes[lane] = true
end

local function flushLanes()
  for lane in pairs(freedLanes) do
    openFull(lane)
  end
  for lane in pairs(changedLanes) do
    openChanged(lane)
  end
  changedLanes, freedLanes = {}, {}
end
