-- Ends claims by their holders. One frame for each: id, token, kind of outcome, delayMs (below 0 for none), result or reason, error.

local FINISH = ">Hc0i4BdI4c0I4c0"
local verdicts = { stale = 0, written = 1, repeated = 2 }

local function readFinishes(frames, position, amount)
  local list, ids = {}, {}
  for n = 1, amount do
    local id, token, kind, delayMs, text, err
    id, token, kind, delayMs, text, err, position = struct.unpack(FINISH, frames, position)
    list[n] = { id, token, kind, delayMs, text, err }
    ids[n] = id
  end
  readJobs(ids)
  return list, position
end

-- An outcome that the core refuses must change nothing at all, also where it hides behind another of the same claim.
local function refusedFinish(claimer, list, mine)
  for _, one in ipairs(list) do
    local job = jobOf(one[1])
    if job and mine(job) and isHeldBy(job, claimer, one[2]) and isRefused(job, one[3]) then return one[1] end
  end
end

local function finishOne(claimer, one, mine)
  local job, token = jobOf(one[1]), one[2]
  if not job then return verdicts.stale, 0 end
  if mine(job) and isHeldBy(job, claimer, token) then
    settleClaim(job, one[3], one[4], one[5], one[6])
    job[SETTLED] = token
    if hasRare(job) and rareOf(job).settledBy then changeRare(job).settledBy = nil end
    return verdicts.written, job[STATE]
  end
  -- Whoever settled the last token is the claimer still, unless another has claimed the job since.
  if job[SETTLED] == token and token > 0 and (rareOf(job).settledBy or job[CLAIMER]) == claimer then
    return verdicts.repeated, job[STATE]
  end
  return verdicts.stale, job[STATE]
end

-- Two bytes for each: what became of it, and where the job stands (0: unknown).
local function finishAll(claimer, list, mine)
  local answers = {}
  for n = 1, #list do answers[n] = string.char(finishOne(claimer, list[n], mine)) end
  return table.concat(answers)
end

local function notRelayed(job)
  return job[RELAYED] == 0
end
