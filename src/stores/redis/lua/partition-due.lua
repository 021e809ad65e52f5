-- uses: base record notices places sources partition
-- rarely: job lines gates index end quarantine
-- What a partition will fire, by runAt. Sorted sets used: relays (its slots by their earliest job), relay:<slot>. It writes nothing
-- but what cannot be read, which it puts among the dead.
-- ARGV[2] the partition, ARGV[3] aheadMs, ARGV[4] maximum number of jobs, ARGV[5] and ARGV[6] the runAt and seq to continue after,
-- or "" each.
-- Answers the store's time, the earliest runAt that was left out (infinite for none), runAt (infinite for none) and seq of the last
-- job, then id, attempt, token and rest of each.

local partition, horizon, limit = readPartition(ARGV[2]), now + ARGV[3], tonumber(ARGV[4])
if not partition then return struct.pack(">dddd", now, huge, huge, 0) end
local afterAt, afterSeq = tonumber(ARGV[5]), tonumber(ARGV[6])

-- How many jobs of a slot are at or before the place to continue from. Those due at the same millisecond are ordered by seq: a binary
-- search finds the place, however many they are.
local function skipped(key)
  if not afterAt then return 0 end
  local low = call("ZCOUNT", key, "-inf", "(" .. ARGV[5])
  local high = low + call("ZCOUNT", key, ARGV[5], ARGV[5])
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = call("ZRANGE", key, middle, middle)[1]
    if seqIn(member) <= afterSeq then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local sources, jobs, leftAt = {}, {}, huge
local slots = {}
for slot = partition[FIRSTSLOT], partition[ENDSLOT] - 1 do
  slots[#slots + 1] = slot
end
local earliest = call("ZMSCORE", P .. "relays", unpack(slots))
for n, slot in ipairs(slots) do
  local at = earliest[n] and tonumber(earliest[n])
  if at and at > horizon then
    leftAt = math.min(leftAt, at)
  elseif at then
    local key = P .. "relay:" .. slot
    local source = newSource({ 0 }, function()
      return key
    end, 4)
    source.to, source.skip, source.slot = "+inf", skipped(key), slot
    sources[#sources + 1] = source
  end
end
-- About as many will be needed from each slot, if all have about as many.
for _, source in ipairs(sources) do
  source.chunk = math.max(4, math.min(1000, math.ceil(1.5 * limit / #sources)))
end
-- Whether a job can be read, waits, and belongs where it was found; and its seq, runAt, expireAt, attempt and token. What a checkpoint would
-- leave out each time must not be offered again and again, nor hold up those behind it.
local function outline(source, front, rest)
  if not rest or #rest < SHORTEST or (front and #front < SHORTESTFRONT) then return false end
  local _, seq, slot, relayed, _, _, _, _, _, _, _, runAt, _, _, expireAt, size = struct.unpack(BACK, rest)
  if slot ~= source.slot or relayed ~= 1 then return false end
  if runAt > horizon and tonumber(call("ZSCORE", source.key, source.member)) ~= runAt then return false end
  local tail = string.sub(rest, BACKSIZE + 1, BACKSIZE + size)
  if runAt ~= runAt or #tail < size or not readTail(tail) then return false end
  local attempt, token = 0, 0
  if front then
    if string.byte(front) ~= WAITING then return false end
    _, attempt, token = struct.unpack(">I4I4I4", front)
  end
  return true, seq, runAt, expireAt, attempt, token
end

local heap, lastAt, lastSeq = newHeap(sources), huge, 0
while heap[1] do
  local source = heap[1]
  local id, rest = source.ids[source.n], source.rests[source.n]
  local isWhole, seq, runAt, expireAt, attempt, token = outline(source, source.fronts[source.n], rest)
  if not isWhole then
    rarely().meet(source.member)
    place(source.key, source.member, false)
  elseif attempt > 0 or expireAt > now then
    if #jobs == limit or runAt > horizon then
      leftAt = math.min(leftAt, runAt)
      break
    end
    jobs[#jobs + 1] = struct.pack(">Hc0I4I4I4c0", #id, id, attempt, token, #rest, rest)
    lastAt, lastSeq = runAt, seq
  end
  moveOn(heap)
end
if next(sets) then flush() end
if rare.hasQuarantined then publish() end
return struct.pack(">dddd", now, leftAt, lastAt, lastSeq) .. table.concat(jobs)
