-- Adds jobs with more than the common fields, and those whose id is already known.

-- A job for the slow path.
function rare.newJob(id, kind, slot, runAt, delayMs, input, bound)
  return {
    id = id,
    kind = kind,
    slot = slot,
    runAt = runAt,
    delayMs = delayMs,
    input = input,
    bound = bound and cjson.decode(bound),
  }
end

-- A run of one job, with its id before it.
function rare.readNewJob(blob, position, kinds)
  local id, number, runAt, delayMs, _, slot, input, bound
  id, position = struct.unpack(">Hc0", blob, position)
  number, runAt, delayMs, _, position = struct.unpack(RUN, blob, position)
  slot, input, position = struct.unpack(">HI4c0", blob, position)
  local kind = kinds[number + 1]
  if kind.bound == 1 then
    bound, position = struct.unpack(">I4c0", blob, position)
  end
  return rare.newJob(id, kind, slot, runAt, delayMs, input, bound), position
end

local function insert(new, state, runAt)
  nextSeq = nextSeq + 1
  local kind = new.kind
  local job = {
    state,
    0,
    0,
    0,
    0,
    0,
    0,
    huge,
    huge,
    "",
    "",
    kind.relayed,
    kind.keyed,
    0,
    0,
    0,
    0,
    kind.maxCrashes,
    new.slot,
    nextSeq,
    kind.priority,
    runAt,
    kind.fireAt < huge and kind.fireAt or runAt,
    now,
    runAt + kind.expireInMs,
    kind.tail,
    id = new.id,
  }
  known[new.id] = job
  setInput(job, new.input)
  local number = math.floor(nextSeq / BLOCKSIZE)
  local block = listIn(blocks, number)
  block[#block + 1] = new.id
  enter(job)
  -- Its block counts it as live.
  live(number, -1)
  return job
end

local function debounce(job, new)
  local waitMs, maxMs = new.bound.debounce.waitMs, new.bound.debounce.maxMs
  local taken = rareOf({ [REST] = new.kind.tail })
  leave(job)
  move(job, math.min(now + waitMs, maxMs and job[ENQUEUEDAT] + maxMs or huge))
  setKeys(job, taken.concurrencyKey, taken.rateKey)
  local tail = changeTail(job)
  tail[VERSION] = tail[VERSION] + 1
  setInput(job, new.input)
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
  if failed and isOrphan(rareOf(job).runAfterFailure, failed[STATE]) then
    cancelIdle(job, orphanReason(failed.id, stateNames[failed[STATE]]))
  end
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

-- Returns its outcome, and the other id or parent that it refers to.
function rare.enqueueOne(new)
  local existing = resolve(new.id)
  if existing then
    if existing.id == new.id then return answers.existing end
    return answers.alias, existing.id
  end
  if new.bound then return enqueueBound(new) end
  insert(new, WAITING, new.runAt < huge and new.runAt or now + new.delayMs)
  return answers.added
end

-- The answer to a batch that must not be written, since some of its new jobs wait for a missing parent; nil otherwise.
function rare.missingParents(ids, asked)
  for _, one in ipairs(asked) do
    for _, parent in ipairs(isKnown(ids[one.place]) and {} or one.parents) do
      if not resolve(parent) then
        local frames = {}
        for n = 1, #ids do
          frames[n] = string.char(answers.withheld)
        end
        frames[one.place] = enqueueAnswer(answers.unknownParent, parent)
        return table.concat(frames)
      end
    end
  end
end
