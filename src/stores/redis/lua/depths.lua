-- uses: base record notices places job lines gates policy index
-- How much each queue has to do.
-- ARGV[2] how many relayed and keyed jobs to look at: no list shows by queue which of them are due.
-- Answers the store's time, whether all due jobs of those were looked at, then for each queue its name, and how many wait, are due, are
-- active and blocked, and the earliest runAt of those that are due (infinite for none).

local queues, names, room = {}, {}, tonumber(ARGV[2])

local function depthOf(queue)
  local depth = queues[queue]
  if not depth then
    depth = { waiting = 0, due = 0, active = 0, blocked = 0, first = huge }
    queues[queue] = depth
  end
  return depth
end

local kinds = { [WAITING] = "waiting", [ACTIVE] = "active", [BLOCKED] = "blocked" }
local counts = call("HGETALL", P .. "counts")
for n = 1, #counts, 2 do
  local kind = kinds[tonumber(string.sub(counts[n], 1, 1))]
  if kind then
    local gate = string.sub(counts[n], 3)
    local depth = depthOf(splitGate(gate))
    local amount = tonumber(counts[n + 1])
    depth[kind] = depth[kind] + (amount == amount and amount or 0)
    if kind == "waiting" then names[#names + 1] = gate end
  end
end

local function addDue(queue, due, first)
  local depth = depthOf(queue)
  depth.due, depth.first = depth.due + due, math.min(depth.first, first)
end

-- How many waiting jobs are in no list seen so far: at first all of them.
local missing = 0
for _, depth in pairs(queues) do
  missing = missing + depth.waiting
end

-- Plain and fragile jobs are in lists of their queue.
for _, gate in ipairs(names) do
  local queue, name = splitGate(gate)
  for _, kind in ipairs({ PLAIN, FRAGILE }) do
    for _, priority in ipairs(call("ZRANGE", lineKey(kind, queue, name), 0, -1)) do
      local key = listKey(kind, priority, queue, name)
      local due = call("ZCOUNT", key, "-inf", now)
      missing = missing - call("ZCARD", key)
      if due > 0 then addDue(queue, due, tonumber(call("ZRANGE", key, 0, 0, "WITHSCORES")[2])) end
    end
  end
end

-- The others are read, the earliest of each list first, until there is no room for more.
local isExact = true

local function lookAt(key)
  missing = missing - call("ZCARD", key)
  local members = call("ZRANGEBYSCORE", key, "-inf", now, "WITHSCORES", "LIMIT", 0, room + 1)
  if #members / 2 > room then
    isExact = false
    members[#members], members[#members - 1] = nil, nil
  end
  room = room - #members / 2
  local ids = {}
  for n = 1, #members, 2 do
    ids[#ids + 1] = idOf(members[n])
  end
  readJobs(ids)
  for n, id in ipairs(ids) do
    local job = jobOf(id)
    if job then addDue(tailOf(job)[QUEUE], 1, tonumber(members[2 * n])) end
  end
end

for _, slot in ipairs(call("ZRANGE", P .. "relays", 0, -1)) do
  lookAt(P .. "relay:" .. slot)
end

local lanes = {}

local function lookAtLane(lane)
  if lanes[lane] then return end
  lanes[lane] = true
  for _, priority in ipairs(call("ZRANGE", P .. "lane:" .. lane, 0, -1)) do
    lookAt(laneListKey(priority, lane))
  end
end

-- Most lanes have a gate that is open or full; for the others, only their jobs show it.
for _, gate in ipairs(names) do
  local _, name = splitGate(gate)
  for _, lane in ipairs(call("ZRANGE", P .. "gates:" .. gate, 0, -1)) do
    lookAtLane(lane)
  end
  for _, full in ipairs(call("ZRANGE", P .. "full:" .. name, 0, -1)) do
    local _, lane = splitGate(full)
    lookAtLane(lane)
  end
end
local blocks = missing > 0 and call("ZRANGE", P .. "live", 0, math.ceil(room / BLOCKSIZE)) or {}
for _, number in ipairs(blocks) do
  if missing <= 0 then break end
  local ids = call("LRANGE", P .. "block:" .. number, 0, -1)
  readJobs(ids)
  for _, id in ipairs(ids) do
    local job = jobOf(id)
    if job and job[STATE] == WAITING and job[KEYED] == 1 and job[RELAYED] == 0 and not isFragile(job) then lookAtLane(laneOf(job)) end
  end
end

-- A claim removes expired jobs from its lists; they wait for the reaper.
local function listOf(job)
  local tail = tailOf(job)
  if job[RELAYED] == 1 then return P .. "relay:" .. job[SLOT] end
  if isFragile(job) then return listKey(FRAGILE, job[PRIORITY], tail[QUEUE], tail[NAME]) end
  if job[KEYED] == 1 then return laneListKey(job[PRIORITY], laneOf(job)) end
  return listKey(PLAIN, job[PRIORITY], tail[QUEUE], tail[NAME])
end

local expired = missing > 0 and call("ZRANGEBYSCORE", EXPIRING, "-inf", now, "LIMIT", 0, room) or {}
readJobs(expired)
for _, id in ipairs(expired) do
  local job = jobOf(id)
  if job and job[STATE] == WAITING and not call("ZSCORE", listOf(job), memberOf(job)) then
    missing = missing - 1
    if job[RUNAT] <= now then addDue(tailOf(job)[QUEUE], 1, job[RUNAT]) end
  end
end
if missing > 0 then isExact = false end

local frames = { struct.pack(">dB", now, isExact and 1 or 0) }
for queue, depth in pairs(queues) do
  frames[#frames + 1] = struct.pack(">Hc0ddddd", #queue, queue, depth.waiting, depth.due, depth.active, depth.blocked, depth.first)
end
return table.concat(frames)
