-- Ended jobs in the order of their ends, out of several sorted sets by time: ended:<state>, and keptends for those that are not there.

local LONGESTREAD = 64

local function boundOf(instant)
  return string.format("%.0f", instant)
end

-- One sorted set, read a piece at a time from `from` to `to`. A piece has all members with a score, or none of them.
local function readEnds(key, from, to, newest)
  return { key = key, from = from, to = to, command = newest and "ZREVRANGEBYSCORE" or "ZRANGEBYSCORE", items = {}, n = 1 }
end

-- The score of the next member, or nil after the last one.
local function nextEnd(reader)
  if not reader.items[reader.n] and not reader.isDone then
    local items = call(reader.command, reader.key, reader.from, reader.to, "WITHSCORES", "LIMIT", 0, LONGESTREAD)
    local last = items[#items]
    reader.isDone = #items < 2 * LONGESTREAD
    if not reader.isDone then
      if items[2] == last then
        items = call(reader.command, reader.key, last, last, "WITHSCORES")
      else
        while items[#items] == last do
          items[#items], items[#items - 1] = nil, nil
        end
      end
      reader.from = "(" .. items[#items]
    end
    reader.items, reader.n = items, 1
  end
  return tonumber(reader.items[reader.n + 1])
end

-- Adds the ids of all members with this score.
local function takeEnds(reader, instant, ids)
  while nextEnd(reader) == instant do
    for _, id in ipairs(idsIn(reader.items[reader.n])) do
      ids[#ids + 1] = id
    end
    reader.n = reader.n + 2
  end
end

-- Readers of all sets that have jobs of these states (nil: of any), within a span and behind an instant, that one included.
local function readersOf(states, span, at, newest)
  local before = span.before and "(" .. boundOf(span.before)
  local from, to = boundOf(math.max(at, span.after or 0)), before or "+inf"
  if newest then
    from = before and at >= span.before and before or boundOf(at)
    to = span.after and boundOf(span.after) or "-inf"
  end
  local readers = { readEnds(KEPTENDS, from, to, newest) }
  for state, name in pairs(stateNames) do
    if isTerminal(state) and (not states or states[state]) then readers[#readers + 1] = readEnds(ENDED .. name, from, to, newest) end
  end
  return readers
end

-- The next instant at which a job ended and the ids of those that did, or nil. Some of these may be gone, or have ended again.
local function nextEnds(readers, newest)
  local instant
  for _, reader in ipairs(readers) do
    local score = nextEnd(reader)
    if score and (not instant or (newest and score > instant) or (not newest and score < instant)) then instant = score end
  end
  if not instant then return nil end
  local ids = {}
  for _, reader in ipairs(readers) do
    takeEnds(reader, instant, ids)
  end
  return instant, ids
end
