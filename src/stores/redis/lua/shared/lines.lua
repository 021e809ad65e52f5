-- Where jobs wait. A line is the jobs of one queue and name that may be claimed alike; those with a limited key wait
-- in a lane instead (gates.lua), those of the relay by their slot.

local function memberOf(job)
  return struct.pack(">I6", job[SEQ]) .. job.id
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

-- The first job of a slot decides its position among the slots; a job that left may have been the first.
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
