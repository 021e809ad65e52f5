-- uses: base record places sources partition
-- What a partition will fire, by runAt. Sorted sets used: relays (its slots by their earliest job), relay:<slot>. It writes nothing.
-- ARGV[2] the partition, ARGV[3] aheadMs, ARGV[4] how many at the most, ARGV[5] and ARGV[6] the runAt and seq behind which they stand,
-- or "" each.
-- Answers the store's time, the earliest runAt that was left out (infinite for none), runAt (infinite for none) and seq of the last
-- job, then id, attempt, token and rest of each.

local partition, horizon, limit = readPartition(ARGV[2]), now + ARGV[3], tonumber(ARGV[4])
if not partition then return struct.pack(">dddd", now, huge, huge, 0) end
local afterAt, afterSeq = tonumber(ARGV[5]), tonumber(ARGV[6])

-- How many jobs of a slot stand at the place to go on from, or before it. Those due at the same millisecond stand by seq: halves
-- find the one, however many they are.
local function skipped(key)
  if not afterAt then return 0 end
  local low = call("ZCOUNT", key, "-inf", "(" .. ARGV[5])
  local high = low + call("ZCOUNT", key, ARGV[5], ARGV[5])
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = call("ZRANGE", key, middle, middle)[1]
    if struct.unpack(">I6", member) <= afterSeq then low = middle + 1 else high = middle end
  end
  return low
end

local sources, jobs, leftAt = {}, {}, huge
local slots = {}
for slot = partition[FIRSTSLOT], partition[ENDSLOT] - 1 do slots[#slots + 1] = slot end
local earliest = call("ZMSCORE", P .. "relays", unpack(slots))
for n, slot in ipairs(slots) do
  local at = earliest[n] and tonumber(earliest[n])
  if at and at > horizon then
    leftAt = math.min(leftAt, at)
  elseif at then
    local key = P .. "relay:" .. slot
    local source = newSource({ 0 }, function() return key end, 4)
    source.to, source.skip = "+inf", skipped(key)
    sources[#sources + 1] = source
  end
end
-- About as many of each slot will be asked for, if all have about as many.
for _, source in ipairs(sources) do source.chunk = math.max(4, math.min(1000, math.ceil(1.5 * limit / #sources))) end
local heap, lastAt, lastSeq = newHeap(sources), huge, 0
while heap[1] do
  local source = heap[1]
  local id, front, rest = source.ids[source.n], source.fronts[source.n], wholeRest(source.rests[source.n])
  if rest then
    local attempt = front and select(5, struct.unpack(FRONT, front)) or 0
    local _, seq, _, _, _, _, _, _, _, _, _, runAt, _, _, expireAt = struct.unpack(BACK, rest)
    if attempt > 0 or expireAt > now then
      if #jobs == limit or runAt > horizon then
        leftAt = math.min(leftAt, runAt)
        break
      end
      local token = front and select(6, struct.unpack(FRONT, front)) or 0
      jobs[#jobs + 1] = struct.pack(">Hc0I4I4I4c0", #id, id, attempt, token, #rest, rest)
      lastAt, lastSeq = runAt, seq
    end
  end
  moveOn(heap)
end
return struct.pack(">dddd", now, leftAt, lastAt, lastSeq) .. table.concat(jobs)
