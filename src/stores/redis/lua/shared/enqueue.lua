-- Adds jobs. What jobs of a batch have in common is a kind, and given once: expireInMs and fireAt (infinite for none), priority,
-- maxCrashes, relayed, keyed, bound, kept (has a retention; 1 or 0 each), and the tail of the record. A job's own frame is the number of its kind, slot, runAt
-- (infinite for none), delayMs and input; for a bound kind also JSON of what ties it to others:
-- { after?, unique?: { key, forMs? }, debounce?: { key, waitMs, maxMs? } }.

local KIND = ">ddi4HBBBBI4c0"
local FRAME = ">I4HddI4c0"
local answers = { added = 1, existing = 2, alias = 3, absorbed = 4, debounced = 5, unknownParent = 6, withheld = 7 }

-- The front of a record that nobody has claimed yet.
local fresh = struct.pack(FRONT, WAITING, 0, 0, 0, 0, 0, 0, huge, huge, 0, "", 0, "")

local function readKinds(blob, position)
  local kinds, amount = {}, nil
  amount, position = struct.unpack(">I4", blob, position)
  for n = 1, amount do
    local one = {}
    one.expireInMs, one.fireAt, one.priority, one.maxCrashes, one.relayed, one.keyed, one.bound, one.kept, one.tail, position =
      struct.unpack(KIND, blob, position)
    -- Nothing else concerns such a job: its record and its place in line are all there is to it.
    one.isPlain = one.relayed + one.keyed + one.bound + one.kept == 0 and one.expireInMs == huge
    one.head = fresh .. struct.pack(">BBBBBHH", one.relayed, one.keyed, 0, 0, 0, 0, one.maxCrashes)
    kinds[n] = one
  end
  return kinds, position
end

-- A job for the careful way in.
local function newJob(id, kind, slot, runAt, delayMs, input, bound)
  return {
    id = id, kind = kind, slot = slot, runAt = runAt, delayMs = delayMs, input = input, bound = bound and cjson.decode(bound),
  }
end

-- Its id stands before its frame.
local function readNewJob(blob, position, kinds)
  local id, number, slot, runAt, delayMs, input, bound
  id, position = struct.unpack(">Hc0", blob, position)
  number, slot, runAt, delayMs, input, position = struct.unpack(FRAME, blob, position)
  local kind = kinds[number + 1]
  if kind.bound == 1 then bound, position = struct.unpack(">I4c0", blob, position) end
  return newJob(id, kind, slot, runAt, delayMs, input, bound), position
end

-- The places in the order of enqueueing for so many jobs; some may stay empty.
local nextSeq
local function reserveSeqs(amount)
  local last = call("HINCRBY", KEYS[1], "seq", amount)
  if last < firstSeq then last = call("HINCRBY", KEYS[1], "seq", firstSeq) end
  nextSeq = last - amount
end

local inputs = {}

local function flushInputs()
  callMany("HSET", INPUTS, inputs, 2)
  inputs = {}
end

local function insert(new, state, runAt)
  nextSeq = nextSeq + 1
  local kind = new.kind
  local job = {
    state, 0, 0, 0, 0, 0, 0, huge, huge, "", "", kind.relayed, kind.keyed, 0, 0, 0, 0, kind.maxCrashes, new.slot, nextSeq,
    kind.priority, runAt, kind.fireAt < huge and kind.fireAt or runAt, now, runAt + kind.expireInMs, kind.tail,
    id = new.id,
  }
  known[new.id] = job
  inputs[#inputs + 1] = new.id
  inputs[#inputs + 1] = new.input
  joinBlock(new.id, nextSeq)
  enter(job)
  -- Its block counts it among the living.
  add(LIVES, math.floor(nextSeq / blockSize), -1)
  return job
end

-- The line of a kind, with what the batch adds to it.
local function doorOf(kind)
  local tail = readTail(kind.tail)
  local key = listKey(PLAIN, kind.priority, tail[QUEUE], tail[NAME])
  local door = { tail = tail, list = listIn(added, key), amount = 0, earliest = huge }
  kind.door = door
  return door
end

local function insertSwiftly(id, kind, slot, runAt, runAtText, input)
  local seq, door = nextSeq + 1, kind.door or doorOf(kind)
  nextSeq = seq
  rewrite(id, kind.head .. struct.pack(
    ">HI6i4dddd", slot, seq, kind.priority, runAt, kind.fireAt < huge and kind.fireAt or runAt, now, huge
  ) .. kind.tail)
  local place, list = #inputs, door.list
  inputs[place + 1], inputs[place + 2] = id, input
  place = #list
  list[place + 1], list[place + 2] = runAtText, seq .. id
  door.amount = door.amount + 1
  if runAt < door.earliest then door.earliest = runAt end
  joinBlock(id, seq)
end

local function flushDoors(kinds)
  for _, kind in ipairs(kinds) do
    local door = kind.door
    if door then
      local queue, name = door.tail[QUEUE], door.tail[NAME]
      countIn(WAITING, door.tail, door.amount)
      lower(lineKey(PLAIN, queue, name), kind.priority, door.earliest)
      lower(P .. "names:" .. name, PLAIN .. queue, door.earliest)
      notices.queues[queue] = true
    end
  end
end

local function debounce(job, new)
  local waitMs, maxMs = new.bound.debounce.waitMs, new.bound.debounce.maxMs
  local taken = rareOf({ [REST] = new.kind.tail })
  leave(job)
  move(job, math.min(now + waitMs, maxMs and job[ENQUEUEDAT] + maxMs or huge))
  setKeys(job, taken.concurrencyKey, taken.rateKey)
  local tail = changeTail(job)
  tail[VERSION] = tail[VERSION] + 1
  inputs[#inputs + 1] = job.id
  inputs[#inputs + 1] = new.input
  enter(job)
end

local function addBound(new, parents)
  local runAt = new.runAt < huge and new.runAt or now + new.delayMs
  if new.bound.debounce then runAt = now + new.bound.debounce.waitMs end
  local open, failed = {}, nil
  for _, parent in ipairs(parents) do
    if not isTerminal(parent[STATE]) then
      open[#open + 1] = parent
    elseif parent[STATE] ~= SUCCEEDED and not failed then
      failed = parent
    end
  end
  local job = insert(new, #open == 0 and WAITING or BLOCKED, runAt)
  for _, parent in ipairs(open) do
    call("SADD", P .. "parents:" .. job.id, parent.id)
    call("ZADD", P .. "children:" .. parent.id, job[SEQ], job.id)
    parent[PARENT] = 1
    changed[parent.id] = parent
  end
  if new.bound.unique then
    call("HSET", P .. "uniques", new.bound.unique.key, job.id)
    if new.bound.unique.forMs then changeRare(job).uniqueUntil = now + new.bound.unique.forMs end
  end
  if failed and not rareOf(job).runAfterFailure then cancelIdle(job, orphanReason(failed)) end
end

local function enqueueBound(new)
  local bound, parents = new.bound, {}
  for n, id in ipairs(bound.after or {}) do
    parents[n] = resolve(id)
    if not parents[n] then return answers.unknownParent, id end
  end
  local holder = bound.unique and uniqueHolder(bound.unique.key)
  if holder then
    setAlias(new.id, holder)
    return answers.absorbed, holder.id
  end
  if bound.debounce then
    flushPlaced()
    local earlier = call("ZRANGE", P .. "debounce:" .. bound.debounce.key, 0, 0)[1]
    local job = earlier and jobOf(earlier)
    if job then
      debounce(job, new)
      setAlias(new.id, job)
      return answers.debounced, job.id
    end
  end
  addBound(new, parents)
  return answers.added
end

-- Returns what became of it, and the other id or parent that this is about.
local function enqueueOne(new)
  local existing = resolve(new.id)
  if existing then
    if existing.id == new.id then return answers.existing end
    return answers.alias, existing.id
  end
  if new.bound then return enqueueBound(new) end
  insert(new, WAITING, new.runAt < huge and new.runAt or now + new.delayMs)
  return answers.added
end

-- Whether the id is known in any way.
local function isKnown(id)
  return known[id] or texts[id] or aliasOf(id)
end

local function enqueueAnswer(outcome, id)
  return id and struct.pack(">BHc0", outcome, #id, id) or string.char(outcome)
end

-- The answer to a batch of which nothing may be written, since some of its new jobs wait for a parent that is not there; nil otherwise.
local function missingParents(ids, asked)
  for _, one in ipairs(asked) do
    for _, parent in ipairs(isKnown(ids[one.place]) and {} or one.parents) do
      if not resolve(parent) then
        local frames = {}
        for n = 1, #ids do frames[n] = string.char(answers.withheld) end
        frames[one.place] = enqueueAnswer(answers.unknownParent, parent)
        return table.concat(frames)
      end
    end
  end
end
