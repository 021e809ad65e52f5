-- Adds jobs. What jobs of a batch have in common is a kind, and given once: expireInMs and fireAt (infinite for none), priority,
-- maxCrashes, relayed, keyed, bound, kept (has a retention; 1 or 0 each), once (is at-most-once), and the tail of the record. Consecutive jobs with the
-- same kind, runAt (infinite for none) and delayMs are a run: its head has these and their number. A job's own frame is its slot and
-- input; for a bound kind also JSON of what ties it to others: { after?, unique?: { key, forMs? }, debounce?: { key, waitMs, maxMs? } }.

local KIND = ">ddi4HBBBBBI4c0"
local RUN = ">I4ddI4"
local answers = { added = 1, existing = 2, alias = 3, absorbed = 4, debounced = 5, unknownParent = 6, withheld = 7 }

local function readKinds(blob, position)
  local kinds, amount = {}
  amount, position = struct.unpack(">I4", blob, position)
  for n = 1, amount do
    local one = {}
    one.expireInMs, one.fireAt, one.priority, one.maxCrashes, one.relayed, one.keyed, one.bound, one.kept, one.once, one.tail, position =
      struct.unpack(KIND, blob, position)
    -- Nothing else concerns such a job: it has only a record and a place in line.
    one.isPlain = one.relayed + one.keyed + one.bound + one.kept == 0 and one.expireInMs == huge
    kinds[n] = one
  end
  return kinds, position
end

-- This many places in enqueue order; some may stay empty.
local nextSeq
local function reserveSeqs(amount)
  nextSeq = call("HINCRBY", KEYS[1], "seq", amount) - amount
end

local inputs = {}

local function flushInputs()
  callMany("HSET", INPUTS, inputs, 2)
  inputs = {}
end

-- What all jobs of a plain kind with one runAt have in common: their rest without its first fields, and the input.
local function commonOf(kind, runAt)
  return struct.pack(
    ">BBBBBHHi4ddddI4",
    0,
    0,
    0,
    0,
    0,
    0,
    kind.maxCrashes,
    kind.priority,
    runAt,
    kind.fireAt < huge and kind.fireAt or runAt,
    now,
    huge,
    #kind.tail
  ) .. kind.tail
end

-- The line of a kind, with what the batch adds to it.
local function doorOf(kind)
  local tail = readTail(kind.tail)
  local key = listKey(PLAIN, kind.priority, tail[QUEUE], tail[NAME])
  local door = { queue = tail[QUEUE], name = tail[NAME], list = listIn(added, key), amount = 0, earliest = huge }
  kind.door = door
  return door
end

-- A job of which only its rest and its place in line are written: it is fresh.
local function insertFast(id, kind, slot, runAt, input)
  local seq, door = nextSeq + 1, kind.door or doorOf(kind)
  nextSeq = seq
  if runAt ~= door.runAt then
    door.runAt, door.runAtText, door.common = runAt, textOf(runAt), commonOf(kind, runAt)
    if runAt < door.earliest then door.earliest = runAt end
  end
  local marks = kind.once * ONCE
  if #input > MAXINSIDE then
    marks = marks + APART
    inputs[#inputs + 1] = id
    inputs[#inputs + 1] = input
    input = ""
  end
  local own = struct.pack(">BI6H", marks, seq, slot)
  local rest = own .. door.common .. input
  rests[id] = rest
  local place, list = #writtenRests, door.list
  writtenRests[place + 1], writtenRests[place + 2] = id, rest
  place = #list
  list[place + 1], list[place + 2] = door.runAtText, string.sub(own, 2, 7) .. id
  door.amount = door.amount + 1
  local block = listIn(blocks, math.floor(seq / BLOCKSIZE))
  block[#block + 1] = id
end

local function flushDoors(kinds)
  for _, kind in ipairs(kinds) do
    local door = kind.door
    if door then
      local queue, name = door.queue, door.name
      countIn(WAITING, queue, name, door.amount)
      lower(lineKey(PLAIN, queue, name), kind.priority, door.earliest)
      lower(P .. "names:" .. name, PLAIN .. queue, door.earliest)
      notices.queues[queue] = true
    end
  end
end

-- Whether the id is known as a job or an alias.
local function isKnown(id)
  return known[id] or rests[id] or aliasOf(id)
end

local function enqueueAnswer(outcome, id)
  return id and struct.pack(">BHc0", outcome, #id, id) or string.char(outcome)
end
