-- uses: base record lines sources answer partition
-- What a partition will fire, by runAt. Sorted sets used: relays (its slots by their earliest job), relay:<slot>. It writes nothing.
-- ARGV[2] the partition, ARGV[3] aheadMs, ARGV[4] how many at the most.
-- Answers the store's time, the earliest runAt that was left out (infinite for none), then the jobs' frames.

local partition, horizon, limit = readPartition(ARGV[2]), now + ARGV[3], tonumber(ARGV[4])
if not partition then return struct.pack(">dd", now, huge) end
local sources, jobs, leftAt = {}, {}, huge
local slots = call("ZRANGE", P .. "relays", 0, -1, "WITHSCORES")
for n = 1, #slots, 2 do
  local slot, earliest = tonumber(slots[n]), tonumber(slots[n + 1])
  if slot >= partition[FIRSTSLOT] and slot < partition[ENDSLOT] then
    if earliest > horizon then
      leftAt = math.min(leftAt, earliest)
    else
      local source = newSource({ 0 }, function() return P .. "relay:" .. slot end, 4)
      source.to = "+inf"
      sources[#sources + 1] = source
    end
  end
end
local heap = newHeap(sources)
while heap[1] do
  local job = jobOf(idOf(heap[1].member))
  if job and not isExpired(job) then
    if #jobs == limit or job[RUNAT] > horizon then
      leftAt = math.min(leftAt, job[RUNAT])
      break
    end
    jobs[#jobs + 1] = job
  end
  moveOn(heap)
end
return struct.pack(">dd", now, leftAt) .. claimedFrames(jobs)
