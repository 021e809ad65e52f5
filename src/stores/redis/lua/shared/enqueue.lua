-- Adds jobs. One frame for each; runAt, expireInMs and fireAt are infinite where there is none. The tail is one of those that are
-- given once for the whole batch. `bound` is JSON for jobs with parents or a key that others may hold, "" for the rest:
-- { after?, unique?: { key, forMs? }, debounce?: { key, waitMs, maxMs? } }.

local NEWJOB = ">Hc0ddddi4HHBBI4I4c0I4c0"
local answers = { added = 1, existing = 2, alias = 3, absorbed = 4, debounced = 5, unknownParent = 6 }

local function readTails(frames, position)
  local texts, amount = {}, nil
  amount, position = struct.unpack(">I4", frames, position)
  for n = 1, amount do texts[n], position = struct.unpack(">I4c0", frames, position) end
  return texts, position
end

local function readNewJob(frames, position, texts)
  local new = { struct.unpack(NEWJOB, frames, position) }
  local job = {
    id = new[1], runAt = new[2], delayMs = new[3], expireInMs = new[4], fireAt = new[5], priority = new[6],
    maxCrashes = new[7], slot = new[8], relayed = new[9], keyed = new[10], tail = texts[new[11] + 1], input = new[12],
    bound = new[13] ~= "" and cjson.decode(new[13]) or nil,
  }
  return job, new[14]
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
  local job = {
    state, 0, new.relayed, new.keyed, 0, 0, 0, 0, new.maxCrashes, new.slot, 0, 0, 0, nextSeq, new.priority, runAt,
    new.fireAt < huge and new.fireAt or runAt, now, runAt + new.expireInMs, huge, huge, "", "", new.tail,
    id = new.id,
  }
  known[new.id] = job
  inputs[#inputs + 1] = new.id
  inputs[#inputs + 1] = new.input
  joinBlock(job)
  enter(job)
  return job
end

local function debounce(job, new)
  local waitMs, maxMs = new.bound.debounce.waitMs, new.bound.debounce.maxMs
  local taken = rareOf({ [REST] = new.tail })
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
    flushSets()
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

local function enqueueAnswer(outcome, id)
  return id and struct.pack(">BHc0", outcome, #id, id) or string.char(outcome)
end
