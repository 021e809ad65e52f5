-- Due jobs in turn order, from many lists at once: higher priority first, then the oldest runAt, then enqueue
-- order. A source is a line or a lane; the heap has the one whose job comes first at its top.

-- With more priorities than this in one place, the order among them is no longer exact.
local maxPriorities = 1000
local maxChunk = 1500

-- The highest first. What is not a number would be due forever.
local function prioritiesIn(key, members)
  local found = {}
  for _, member in ipairs(members) do
    local priority = tonumber(member)
    if priority then
      found[#found + 1] = priority
    else
      call("ZREM", key, member)
    end
  end
  if #found > 1 then table.sort(found, function(a, b)
    return a > b
  end) end
  return found
end

local function duePriorities(key)
  local found = call("ZRANGEBYSCORE", key, "-inf", now, "LIMIT", 0, maxPriorities)
  return prioritiesIn(key, found)
end

-- Reads the next jobs of a source, with their fronts and rests; false when there are none. A lane's jobs are removed as they are read, a
-- line's stay until the end. Scores are fetched only if several sources are compared.
local function fetch(source)
  local width = source.width
  while true do
    local priority = source.priorities[source.turn]
    if not priority then
      source.isOver = true
      return false
    end
    local key = source.listOf(priority)
    local buffer
    if width == 2 then
      buffer = call("ZRANGEBYSCORE", key, "-inf", source.to, "WITHSCORES", "LIMIT", source.skip, source.chunk)
    else
      buffer = call("ZRANGEBYSCORE", key, "-inf", source.to, "LIMIT", source.skip, source.chunk)
    end
    if buffer[1] then
      local ids = {}
      for n = 1, #buffer, width do
        ids[#ids + 1] = idOf(buffer[n])
      end
      source.buffer, source.ids, source.n, source.priority, source.key = buffer, ids, 1, priority, key
      source.fronts, source.rests = hashValues(FRONTS, ids), hashValues(JOBS, ids)
      if not source.lane then source.skip = source.skip + #ids end
      source.chunk = math.min(source.chunk * 4, maxChunk)
      return true
    end
    source.turn, source.skip = source.turn + 1, 0
  end
end

-- Goes to the next job; false when there is none.
local function advance(source)
  local n, width = source.n + 1, source.width
  if source.ids[n] then
    source.n = n
  elseif not fetch(source) then
    return false
  end
  if width == 2 then
    n = source.n * 2
    source.member, source.runAt = source.buffer[n - 1], tonumber(source.buffer[n])
  else
    source.member = source.buffer[source.n]
  end
  return true
end

local function newSource(priorities, listOf, chunk, lane)
  return {
    priorities = priorities,
    listOf = listOf,
    chunk = math.max(1, math.min(chunk, maxChunk)),
    lane = lane,
    to = now,
    turn = 1,
    skip = 0,
    n = 0,
    ids = {},
    taken = 0,
    width = 1,
  }
end

local function isBefore(a, b)
  if a.priority ~= b.priority then return a.priority > b.priority end
  if a.runAt ~= b.runAt then return a.runAt < b.runAt end
  -- Not as strings: the server compares those by its locale.
  return seqIn(a.member) < seqIn(b.member)
end

local function sink(heap, place)
  while true do
    local best, left = place, place * 2
    if heap[left] and isBefore(heap[left], heap[best]) then best = left end
    if heap[left + 1] and isBefore(heap[left + 1], heap[best]) then best = left + 1 end
    if best == place then return end
    heap[place], heap[best] = heap[best], heap[place]
    place = best
  end
end

local function newHeap(sources)
  local heap, width = {}, #sources > 1 and 2 or 1
  for _, source in ipairs(sources) do
    source.width = width
    if advance(source) then heap[#heap + 1] = source end
  end
  for place = math.floor(#heap / 2), 1, -1 do
    sink(heap, place)
  end
  return heap
end

-- Moves the top source to its next job, or removes it.
local function moveOn(heap, stop)
  if stop or not advance(heap[1]) then
    heap[1] = heap[#heap]
    heap[#heap] = nil
  end
  if heap[2] then sink(heap, 1) end
end
