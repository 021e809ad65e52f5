-- How jobs are found by fields that may change, in addition to places.lua. A job leaves its places before it changes and enters them after.
--
--   named        sorted set of active jobs of the relay, by slot
--   expiring     sorted set of jobs not yet started, by expireAt
--   forgetting   sorted set of terminal jobs with their own retention, by when they are forgotten; they are not in ended:<state>
--   keptends     sorted set of terminal jobs that are in forgetting, or held back from prune, by finishedAt

local EXPIRING, FORGETTING, KEPTENDS = P .. "expiring", P .. "forgetting", P .. "keptends"

local function isFragile(job)
  return isFragileAfter(job[CRASHES], job[MAXCRASHES])
end

local function endedKey(state)
  return ENDED .. stateNames[state]
end

-- The ids of a bundle; they have no line breaks.
local function idsIn(bundle)
  local ids = {}
  for id in string.gmatch(bundle, "[^\n]+") do
    ids[#ids + 1] = id
  end
  return ids
end

-- Where an ended job is listed, and its score there.
local function endedPlace(job)
  local kept = hasRare(job) and rareOf(job).kept
  local keptMs = kept and kept[stateNames[job[STATE]]]
  if keptMs then return FORGETTING, job[FINISHEDAT] + keptMs end
  return endedKey(job[STATE]), job[FINISHEDAT]
end

local function count(job, by)
  local tail = tailOf(job)
  countIn(job[STATE], tail[QUEUE], tail[NAME], by)
  if not isTerminal(job[STATE]) then live(math.floor(job[SEQ] / BLOCKSIZE), by) end
end

local function countActive(job, by)
  add(ACTIVES, "q" .. tailOf(job)[QUEUE], by)
  if job[KEYED] == 0 then return end
  local key = rareOf(job).concurrencyKey
  if key then add(ACTIVES, "k" .. key, by) end
end

local function joinShelf(job)
  if job[RELAYED] == 1 then
    joinRelay(job)
  elseif isFragile(job) then
    joinLine(FRAGILE, job)
  elseif job[KEYED] == 1 then
    joinLane(job)
  else
    joinLine(PLAIN, job)
  end
end

local function leaveShelf(job)
  if job[RELAYED] == 1 then
    leaveRelay(job)
  elseif isFragile(job) then
    leaveLine(FRAGILE, job)
  elseif job[KEYED] == 1 then
    leaveLane(job)
  else
    leaveLine(PLAIN, job)
  end
end

-- Waiting, never claimed jobs by their debounce key.
local function placeDebounced(job, score)
  if not hasRare(job) then return end
  local key = rareOf(job).debounceKey
  if key then place(P .. "debounce:" .. key, job.id, score) end
end

local function noteFreed(job)
  if job[KEYED] == 1 then
    local key = rareOf(job).concurrencyKey
    if key then
      notices.anyQueue = true
      freedLanes["c" .. key] = true
    end
  end
  noteFreedIn(tailOf(job)[QUEUE])
end

local function leave(job)
  local state = job[STATE]
  count(job, -1)
  if state == WAITING then
    leaveShelf(job)
    if job[TOKEN] == 0 then placeDebounced(job, false) end
  elseif state == ACTIVE then
    if job[RELAYED] == 1 then
      place(P .. "named", job.id, false)
    else
      place(LEASES, job.id, false)
      countActive(job, -1)
    end
    job.wasActive = true
  elseif state ~= BLOCKED then
    local key = endedPlace(job)
    place(key, job.id, false)
    if key == FORGETTING then place(KEPTENDS, job.id, false) end
  end
  if state <= WAITING and mayExpire(job) then place(EXPIRING, job.id, false) end
end

local function enter(job)
  local state = job[STATE]
  count(job, 1)
  if state == WAITING then
    joinShelf(job)
    if job[TOKEN] == 0 then placeDebounced(job, job[SEQ]) end
    notices.queues[tailOf(job)[QUEUE]] = true
  elseif state == ACTIVE then
    if job[RELAYED] == 1 then
      place(P .. "named", job.id, job[SLOT])
    else
      countActive(job, 1)
    end
  elseif state ~= BLOCKED then
    local key, score = endedPlace(job)
    place(key, job.id, score)
    if key == FORGETTING then place(KEPTENDS, job.id, job[FINISHEDAT]) end
  end
  if state <= WAITING and mayExpire(job) then place(EXPIRING, job.id, job[EXPIREAT]) end
  if job.wasActive and state ~= ACTIVE and job[RELAYED] == 0 then noteFreed(job) end
  job.wasActive = nil
  changed[job.id] = job
end

function rare.flushPlaces()
  flushLanes()
  flushRelay()
end

-- One line of a job's trail, written before the change that it describes. The oldest lines are dropped first.
local maxTrailLength = 200
local function tell(job, kind, text, err)
  local key = P .. "trail:" .. job.id
  -- An empty string means none; a value starts with a mark.
  text, err = text and "=" .. text or "", err and "=" .. err or ""
  local claimer = job[CLAIMER]
  call("RPUSH", key, struct.pack(">dBI4I4Hc0I4c0I4c0", now, kind, job[ATTEMPT], job[TOKEN], #claimer, claimer, #text, text, #err, err))
  call("LTRIM", key, -maxTrailLength, -1)
  job[TRAILED] = 1
  changed[job.id] = job
end
