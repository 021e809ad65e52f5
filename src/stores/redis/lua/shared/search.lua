-- Jobs that match a filter, in enqueue order, a bounded piece at a time.
-- A filter is JSON: ids, states (numbers), names, queues, deliveries (numbers), tags, schedule, enqueuedAfter, enqueuedBefore,
-- runAfter, runBefore; a missing field matches everything.

-- How many jobs one call looks at, and up to how many are fetched by their state instead of searched.
local maxLookedAt = 2000

local function setOf(list)
  if not list then return nil end
  local set = {}
  for _, value in ipairs(list) do
    set[value] = true
  end
  return set
end

local function readFilter(filter)
  return {
    filter = filter,
    ids = setOf(filter.ids),
    states = setOf(filter.states),
    names = setOf(filter.names),
    queues = setOf(filter.queues),
    deliveries = setOf(filter.deliveries),
  }
end

local function hasTags(job, tags)
  local own = setOf(rareOf(job).tags) or {}
  for _, tag in ipairs(tags) do
    if not own[tag] then return false end
  end
  return true
end

local function isWithin(instant, from, to)
  return (not from or instant >= from) and (not to or instant < to)
end

local function matches(job, wanted)
  local tail, filter = tailOf(job), wanted.filter
  return (not wanted.states or wanted.states[job[STATE]])
    and (not wanted.ids or wanted.ids[job.id])
    and (not wanted.names or wanted.names[tail[NAME]])
    and (not wanted.queues or wanted.queues[tail[QUEUE]])
    and (not wanted.deliveries or wanted.deliveries[tail[DELIVERY]])
    and (not filter.schedule or rareOf(job).schedule == filter.schedule)
    and isWithin(job[ENQUEUEDAT], filter.enqueuedAfter, filter.enqueuedBefore)
    and isWithin(job[RUNAT], filter.runAfter, filter.runBefore)
    and (not filter.tags or hasTags(job, filter.tags))
end

-- The ids to look at when they are few and known in advance, or nil.
local function fewIds(wanted)
  if wanted.ids then return wanted.filter.ids end
  if not wanted.states then return nil end
  local ids, keys = {}, { P .. "heldback", FORGETTING }
  for state in pairs(wanted.states) do
    if not isTerminal(state) then return nil end
    keys[#keys + 1] = endedKey(state)
  end
  for _, key in ipairs(keys) do
    local amount = call("ZCARD", key)
    for first = 0, amount - 1, 10 do
      if #ids + amount - first > maxLookedAt then return nil end
      for _, bundle in ipairs(call("ZRANGE", key, first, first + 9)) do
        for _, id in ipairs(idsIn(bundle)) do
          ids[#ids + 1] = id
        end
      end
    end
  end
  return ids
end

local function isBehind(seq, cursor, newest)
  if newest then return seq < cursor end
  return seq > cursor
end

local function searchFew(ids, wanted, cursor, newest, limit)
  local seen, found = {}, {}
  readJobs(ids)
  for _, id in ipairs(ids) do
    local job = jobOf(id)
    if job and not seen[id] and isBehind(job[SEQ], cursor, newest) and matches(job, wanted) then found[#found + 1] = job end
    seen[id] = true
  end
  table.sort(found, function(a, b)
    return isBehind(b[SEQ], a[SEQ], newest)
  end)
  local last = found[limit]
  local more = last and found[limit + 1]
  while #found > limit do
    found[#found] = nil
  end
  return found, more and last[SEQ] or 0
end

-- Whether any requested state is terminal: if not, only blocks with live jobs matter.
local function blocksKey(wanted)
  if not wanted.states then return P .. "blocks" end
  for state in pairs(wanted.states) do
    if isTerminal(state) then return P .. "blocks" end
  end
  return P .. "live"
end

-- Blocks from a score on, and the score to continue behind; nil if there are no more. Not by their numbers: where something else has
-- written those, a script would loop forever.
local function blocksFrom(key, score, newest)
  local found
  if newest then
    found = call("ZREVRANGEBYSCORE", key, score, "-inf", "WITHSCORES", "LIMIT", 0, 20)
  else
    found = call("ZRANGEBYSCORE", key, score, "+inf", "WITHSCORES", "LIMIT", 0, 20)
  end
  local numbers = {}
  for n = 1, #found, 2 do
    numbers[#numbers + 1] = found[n]
  end
  return numbers, found[1] and "(" .. found[#found]
end

-- Whether a job is in this block by its own record. If something else has written to it, going on behind it would leave out
-- those that follow.
local function stands(job, number)
  return math.floor(job[SEQ] / BLOCKSIZE) == tonumber(number)
end

-- Up to `limit` jobs after the cursor, and where to continue: 0 when there is nothing more to look at.
local function search(wanted, cursor, newest, limit)
  if limit <= 0 then return {}, 0 end
  local few = fewIds(wanted)
  if few then return searchFew(few, wanted, cursor, newest, limit) end
  local key, found, looked, at = blocksKey(wanted), {}, 0, cursor
  local numbers, behind = blocksFrom(key, math.floor(cursor / BLOCKSIZE), newest)
  while numbers[1] do
    for _, number in ipairs(numbers) do
      local ids = call("LRANGE", P .. "block:" .. number, 0, -1)
      readJobs(ids)
      for n = 1, #ids do
        local job = jobOf(ids[newest and #ids - n + 1 or n])
        if job and stands(job, number) and isBehind(job[SEQ], at, newest) then
          looked, at = looked + 1, job[SEQ]
          if matches(job, wanted) then found[#found + 1] = job end
          if #found >= limit then return found, at end
        end
      end
      if looked >= maxLookedAt then return found, at end
    end
    numbers, behind = blocksFrom(key, behind, newest)
  end
  return found, 0
end
