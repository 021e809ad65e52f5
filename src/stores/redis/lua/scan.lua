-- uses: base record notices places job lines gates policy index search ends
-- Jobs in outline out of a bounded number that are looked at, in the order of enqueueing, or of their ends.
-- ARGV[2] JSON: { filter, limit, lookAt, newest, byEnd, at, cursor, endedAfter, endedBefore, error, text }; the cursor is the seq to continue
-- behind, of those that ended at `at` where the order is that of ends. error and text are lists of needles in lower case, of which one must be
-- there. ARGV[3] how many bytes of an error are enough.
-- Answers whether there is more, how many jobs were looked at, behind which end and seq to continue, then the jobs' frames as in
-- shared/answer.lua, without inputs.

local MAXSEQ = 9007199254740991
local params, errorBytes = cjson.decode(ARGV[2]), tonumber(ARGV[3])
local newest, wanted = params.newest, readFilter(params.filter)

local function has(needles, texts, count)
  if not needles then return true end
  for n = 1, count do
    local text = texts[n] and string.lower(texts[n])
    for _, needle in ipairs(needles) do
      if text and string.find(text, needle, 1, true) then return true end
    end
  end
  return false
end

local function hasText(job)
  if not params.text then return true end
  local own, count = rareOf(job), 3
  local input = job.apart and call("HGET", INPUTS, job.id) or job.input
  local texts = { own.reason or false, own.error or false, input }
  for _, tag in ipairs(own.tags or {}) do
    count = count + 1
    texts[count] = tag
  end
  return has(params.text, texts, count)
end

local function isAsked(job)
  if not matches(job, wanted) then return false end
  if params.endedAfter or params.endedBefore then
    if not isTerminal(job[STATE]) or not isWithin(job[FINISHEDAT], params.endedAfter, params.endedBefore) then return false end
  end
  local own = rareOf(job)
  return has(params.error, { own.reason or false, own.error or false }, 2) and hasText(job)
end

local found, looked, at, endedAt = {}, 0, params.cursor, params.at

-- Whether there is room for one more; a job that is not looked at is the first of the next call.
local function look(job)
  if #found >= params.limit or looked >= params.lookAt then return false end
  looked, at = looked + 1, job[SEQ]
  if params.byEnd then endedAt = job[FINISHEDAT] end
  if isAsked(job) then found[#found + 1] = job end
  return true
end

-- Whether everything was looked at.
local function lookAtFew(ids)
  local seen, jobs = {}, {}
  readJobs(ids)
  for _, id in ipairs(ids) do
    local job = not seen[id] and jobOf(id)
    seen[id] = true
    local isCandidate = job and (not wanted.states or wanted.states[job[STATE]])
    if isCandidate and isBehind(job[SEQ], at, newest) then jobs[#jobs + 1] = job end
  end
  table.sort(jobs, function(a, b)
    return isBehind(b[SEQ], a[SEQ], newest)
  end)
  for _, job in ipairs(jobs) do
    if not look(job) then return false end
  end
  return true
end

local function lookAtBlocks()
  local key = blocksKey(wanted)
  local numbers, behind = blocksFrom(key, math.floor(at / BLOCKSIZE), newest)
  while numbers[1] do
    for _, number in ipairs(numbers) do
      local ids = call("LRANGE", P .. "block:" .. number, 0, -1)
      readJobs(ids)
      for n = 1, #ids do
        local job = jobOf(ids[newest and #ids - n + 1 or n])
        if job and stands(job, number) and isBehind(job[SEQ], at, newest) and not look(job) then return false end
      end
    end
    numbers, behind = blocksFrom(key, behind, newest)
  end
  return true
end

-- Of some jobs, those that ended at this instant and were not looked at before, in their order.
local function endedThen(instant, ids)
  local seen, jobs = {}, {}
  readJobs(ids)
  for _, id in ipairs(ids) do
    local job = not seen[id] and jobOf(id)
    seen[id] = true
    local isCandidate = job and isTerminal(job[STATE]) and job[FINISHEDAT] == instant and (not wanted.states or wanted.states[job[STATE]])
    if isCandidate and (instant ~= params.at or isBehind(job[SEQ], params.cursor, newest)) then jobs[#jobs + 1] = job end
  end
  table.sort(jobs, function(a, b)
    return isBehind(b[SEQ], a[SEQ], newest)
  end)
  return jobs
end

local function lookAtEnds()
  local readers = readersOf(wanted.states, { after = params.endedAfter, before = params.endedBefore }, params.at, newest)
  local read = 0
  while true do
    local instant, ids = nextEnds(readers, newest)
    if not instant then return true end
    for _, job in ipairs(endedThen(instant, ids)) do
      if not look(job) then return false end
    end
    -- What is gone is passed over, but not without end. The first instant was read before.
    if instant ~= params.at then read = read + #ids end
    endedAt, at = instant, newest and 0 or MAXSEQ
    if read >= 2 * params.lookAt then return false end
  end
end

local function lookAtAll()
  if params.byEnd then return lookAtEnds() end
  local few = fewIds(wanted)
  if few then return lookAtFew(few) end
  return lookAtBlocks()
end
local isDone = lookAtAll()

local frames = {}
for n, job in ipairs(found) do
  local err = rareOf(job).error
  -- The stack is most of an error, and not asked for.
  if err and #err > errorBytes then changeRare(job).error = string.sub(err, 1, errorBytes) end
  job[RESULT], job.apart, job.input = "", false, "null"
  local front, rest = packFront(job), packRest(job)
  frames[n] = struct.pack(">Hc0I4c0I4c0I4H", #job.id, job.id, #front, front, #rest, rest, 0, 0)
end
return struct.pack(">dddd", isDone and 0 or 1, looked, endedAt, at) .. table.concat(frames)
