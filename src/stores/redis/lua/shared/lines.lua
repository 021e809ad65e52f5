-- Where waiting jobs stand. A line is the jobs of one queue and name that may be claimed alike; those with a limited key stand
-- in a lane instead (gates.lua), those of the relay by their slot.
--
--   list:<kind>:<priority>:<queue>␟<name>   sorted set of its jobs with one priority, by runAt, then seq
--   line:<kind>:<queue>␟<name>              sorted set of its priorities, by the earliest runAt in each list
--   names:<name>                            sorted set of <kind><queue>, by the earliest runAt (or gate) behind it
--
-- The last two are lower bounds: they are moved forward only by claims, which look there anyway. So neither a backlog for later,
-- nor one of other names, costs a claim anything.

local PLAIN, FRAGILE, GATES = "p", "f", "g"
local SEPARATOR = "\31"
local firstSeq = 1000000000000

-- Jobs with one score stand in the order of their members: seq has 13 digits, always.
local function memberOf(job)
  return job[SEQ] .. job.id
end

local function idOf(member)
  return string.sub(member, 14)
end

local function lineKey(kind, queue, name)
  return P .. "line:" .. kind .. ":" .. queue .. SEPARATOR .. name
end

local function listKey(kind, priority, queue, name)
  return P .. "list:" .. kind .. ":" .. priority .. ":" .. queue .. SEPARATOR .. name
end

-- Lowest runAt that was added in each place, so that a batch says it once.
local lowered = {}

local function lower(key, member, score)
  local set = lowered[key]
  if not set then
    set = {}
    lowered[key] = set
  end
  if not set[member] or score < set[member] then set[member] = score end
end

local function flushLowered()
  for key, set in pairs(lowered) do
    for member, score in pairs(set) do call("ZADD", key, "LT", score, member) end
  end
  lowered = {}
end

local function joinLine(kind, job)
  local tail = tailOf(job)
  local queue, name, runAt = tail[QUEUE], tail[NAME], job[RUNAT]
  place(listKey(kind, job[PRIORITY], queue, name), memberOf(job), runAt)
  lower(lineKey(kind, queue, name), job[PRIORITY], runAt)
  lower(P .. "names:" .. name, kind .. queue, runAt)
end

local function leaveLine(kind, job)
  local tail = tailOf(job)
  place(listKey(kind, job[PRIORITY], tail[QUEUE], tail[NAME]), memberOf(job), false)
end

-- The first job of a slot decides where it stands among the slots; a job that left may have been the first.
local relaySlots = {}

local function joinRelay(job)
  place(P .. "relay:" .. job[SLOT], memberOf(job), job[RUNAT])
  relaySlots[job[SLOT]] = true
end

local function leaveRelay(job)
  place(P .. "relay:" .. job[SLOT], memberOf(job), false)
  relaySlots[job[SLOT]] = true
end

local function flushRelay()
  for slot in pairs(relaySlots) do
    local first = call("ZRANGE", P .. "relay:" .. slot, 0, 0, "WITHSCORES")
    if first[1] then
      call("ZADD", P .. "relays", first[2], slot)
    else
      call("ZREM", P .. "relays", slot)
    end
  end
  relaySlots = {}
end
