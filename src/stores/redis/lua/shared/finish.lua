-- Ends claims by their holders. One frame for each: id, token and kind of outcome; 0 is a success without a result. The others have
-- delayMs (below 0 for none), result or reason, and error.

local verdicts = { stale = 0, written = 1, repeated = 2 }

local function notRelayed(job)
  return job[RELAYED] == 0
end

-- The claims in columns.
local function readFinishes(frames, position, amount)
  local list = { ids = {}, tokens = {}, kinds = {}, delays = {}, texts = {}, errors = {} }
  local ids, tokens, kinds = list.ids, list.tokens, list.kinds
  for n = 1, amount do
    ids[n], tokens[n], kinds[n], position = struct.unpack(">Hc0i4B", frames, position)
    if kinds[n] == 0 then
      kinds[n] = outcomes.succeed
    else
      list.delays[n], list.texts[n], list.errors[n], position = struct.unpack(">dI4c0I4c0", frames, position)
    end
  end
  readJobs(ids)
  return list
end

-- An outcome that the core refuses must change nothing at all, also where it hides behind another of the same claim.
local function refusedFinish(claimer, list, mine)
  for n, kind in ipairs(list.kinds) do
    if kind == outcomes.retry or kind == outcomes.snooze or kind == outcomes.rollback then
      local job = jobOf(list.ids[n])
      if job and mine(job) and isHeldBy(job, claimer, list.tokens[n]) and isRefused(job, kind) then return job.id end
    end
  end
end

-- Fronts of records that were met, and what becomes of each by a success; false where there is more to do than that.
local successes = {}

local function successOf(front, text, claimer)
  local state, cancel, special, _, attempt, token, _, claimedAt, _, holder, _, back = struct.unpack(FRONT, text)
  local swift = state == ACTIVE and special == 0 and holder == claimer and back == #front + 1
  local after = swift and {
    token = token,
    front = struct.pack(FRONT, SUCCEEDED, cancel, 0, 0, attempt, token, token, claimedAt, now, #holder, holder, 0, ""),
  }
  successes[front] = after
  return after
end

-- A success of a job without keys, children or a past: all that changes is the front of its record, and jobs that were claimed
-- together have the same.
local function finishSwiftly(claimer, id, token, result)
  local text = untouched(id)
  if not text then return false end
  local length = 38 + #claimer
  local front = string.sub(text, 1, length)
  local after = successes[front]
  if after == nil then after = successOf(front, text, claimer) end
  if not after or after.token ~= token then return false end
  local rest = string.sub(text, length + 1)
  local tail = readTail(string.sub(rest, BACKSIZE + 1))
  if not tail then return false end
  local new = after.front
  if result then new = string.sub(new, 1, length - 4) .. struct.pack(">I4c0", #result, result) end
  rewrite(id, new .. rest)
  tail.finished = (tail.finished or 0) + 1
  add(LIVES, math.floor(struct.unpack(">I6", rest, SEQPLACE + 1) / blockSize), -1)
  local away, ended, told = listIn(gone, LEASES), listIn(added, endedKeys[SUCCEEDED]), notices.ended
  away[#away + 1] = id
  local place = #ended
  ended[place + 1], ended[place + 2] = nowText, id
  told[#told + 1] = id
  return true
end

-- Counts what was finished swiftly, once for each definition.
local function countFinished()
  for _, tail in pairs(tails) do
    if tail.finished then
      countIn(ACTIVE, tail, -tail.finished)
      countIn(SUCCEEDED, tail, tail.finished)
      add(ACTIVES, "q" .. tail[QUEUE], -tail.finished)
      noteFreedIn(tail[QUEUE])
      tail.finished = nil
    end
  end
end

local function finishOne(claimer, list, n, mine)
  local token = list.tokens[n]
  local job = jobOf(list.ids[n])
  if not job then return verdicts.stale, 0 end
  if mine(job) and isHeldBy(job, claimer, token) then
    settleClaim(job, list.kinds[n], list.delays[n] or -1, list.texts[n] or "", list.errors[n] or "")
    job[SETTLED], job[AHEAD] = token, 0
    if hasRare(job) and rareOf(job).settledBy then changeRare(job).settledBy = nil end
    return verdicts.written, job[STATE]
  end
  -- Whoever settled the last token is the claimer still, unless another has claimed the job since.
  if job[SETTLED] == token and token > 0 and (rareOf(job).settledBy or job[CLAIMER]) == claimer then
    return verdicts.repeated, job[STATE]
  end
  return verdicts.stale, job[STATE]
end

-- Two bytes for each: what became of it, and where the job stands (0: unknown). `swiftly` ends a success where nothing about it is out
-- of the ordinary, and says whether it did.
local function finishAll(claimer, list, mine, swiftly)
  local ids, tokens, kinds, results = list.ids, list.tokens, list.kinds, {}
  local succeeded = string.char(verdicts.written, SUCCEEDED)
  for n = 1, #ids do
    if kinds[n] == outcomes.succeed and swiftly(claimer, ids[n], tokens[n], list.texts[n]) then
      results[n] = succeeded
    else
      results[n] = string.char(finishOne(claimer, list, n, mine))
    end
  end
  countFinished()
  return table.concat(results)
end
