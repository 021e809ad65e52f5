-- Jobs as decoded for reading and changing: a list of the numbers and strings of front and rest, by the names in record.lua.

local stateNames = { "blocked", "waiting", "active", "succeeded", "dead", "lost", "cancelled" }

-- What a job's definition says, and rare fields. Read-only: changeTail returns a copy to write to.
local function tailOf(job)
  return job.tail or readTail(job[REST])
end

local function changeTail(job)
  local own = job.tail
  if not own then
    own = { unpack(tailOf(job), 1, RARE) }
    job.tail = own
  end
  return own
end

-- Keys, reasons, errors and the like, by name. Read-only: changeRare returns a copy to write to.
local function rareOf(job)
  local found = job.rare
  if not found then
    local text = tailOf(job)[RARE]
    if text == "" then
      found = {}
    else
      -- What another program wrote there must not stop a script that also works on other jobs.
      local isJson, value = pcall(cjson.decode, text)
      found = isJson and type(value) == "table" and value or { unreadable = true }
    end
    job.rare = found
  end
  return found
end

local function hasRare(job)
  if job.rare then return next(job.rare) ~= nil end
  return tailOf(job)[RARE] ~= ""
end

local function changeRare(job)
  changeTail(job)
  return rareOf(job)
end

-- Keeps who settled the last token, even when another claimer holds the job now.
local function setHolder(job, claimer)
  if job[SETTLED] > 0 and job[CLAIMER] ~= claimer and not rareOf(job).settledBy then changeRare(job).settledBy = job[CLAIMER] end
  job[CLAIMER], job[CLAIMEDAT], job[TOKEN] = claimer, now, job[TOKEN] + 1
end

local function packTail(job)
  local tail = job.tail
  if not tail then return job[REST] end
  if job.rare then tail[RARE] = next(job.rare) and cjson.encode(job.rare) or "" end
  return struct.pack(TAIL, #tail[1], tail[1], #tail[2], tail[2], tail[3], tail[4], tail[5], tail[6], tail[7], #tail[8], tail[8])
end

-- Whether a claim or a finish of it must do more than change its front.
local function isSpecial(job)
  if job[RELAYED] + job[KEYED] + job[PARENT] + job[CRASHES] > 0 or job[EXPIREAT] < huge then return 1 end
  if not hasRare(job) then return 0 end
  local found = rareOf(job)
  return (found.reason or found.settledBy or found.debounceKey or found.kept) and 1 or 0
end

local function packFront(job)
  local claimer, result, tail = job[CLAIMER], job[RESULT], tailOf(job)
  return struct.pack(
    FRONT,
    job[1],
    job[2],
    isSpecial(job),
    job[4],
    job[5],
    job[6],
    job[7],
    job[8],
    job[9],
    math.floor(job[SEQ] / BLOCKSIZE),
    #tail[QUEUE],
    tail[QUEUE],
    #tail[NAME],
    tail[NAME],
    #claimer,
    claimer,
    #result,
    result
  )
end

local function packRest(job)
  local tail = packTail(job)
  local marks = (job.apart and APART or 0) + (tailOf(job)[DELIVERY] == ATMOSTONCE and ONCE or 0)
  return struct.pack(
    BACK,
    marks,
    job[SEQ],
    job[SLOT],
    job[12],
    job[13],
    job[14],
    job[15],
    job[16],
    job[17],
    job[18],
    job[21],
    job[22],
    job[23],
    job[24],
    job[25],
    #tail
  ) .. tail .. job.input
end

local function isFresh(job)
  return job[STATE] == WAITING and job[TOKEN] + job[CANCEL] + isSpecial(job) == 0
end

-- Writes the jobs that have changed. One that is fresh and has no front needs none.
function rare.packChanged()
  for id, job in pairs(changed) do
    local rest = packRest(job)
    if rest ~= rests[id] then
      rests[id] = rest
      local place = #writtenRests
      writtenRests[place + 1], writtenRests[place + 2] = id, rest
    end
    if fronts[id] or not isFresh(job) then
      local front = packFront(job)
      if front ~= fronts[id] then writeFront(id, front) end
    end
  end
  changed = {}
end

-- Fails where either is cut short, or says what cannot be.
local function unpackJob(id, front, rest)
  local job = { WAITING, 0, 0, 0, 0, 0, 0, huge, huge, "", "", id = id }
  if front then
    local state, cancel, special, ahead, attempt, token, settled, claimedAt, finishedAt, _, _, _, claimer, result =
      struct.unpack(FRONT, front)
    job[1], job[2], job[3], job[4], job[5], job[6], job[7], job[8], job[9], job[10], job[11] =
      state, cancel, special, ahead, attempt, token, settled, claimedAt, finishedAt, claimer, result
  end
  local marks, seq, slot, relayed, keyed, parent, aliased, trailed, crashes, maxCrashes, priority, runAt, fireAt, enqueuedAt, expireAt, size =
    struct.unpack(BACK, rest)
  job[12], job[13], job[14], job[15], job[16], job[17], job[18], job[19], job[20], job[21], job[22], job[23], job[24], job[25] =
    relayed, keyed, parent, aliased, trailed, crashes, maxCrashes, slot, seq, priority, runAt, fireAt, enqueuedAt, expireAt
  job[REST] = string.sub(rest, BACKSIZE + 1, BACKSIZE + size)
  if #job[REST] < size or not readTail(job[REST]) then error("cut short") end
  -- Something that is not a number would be refused by the sorted set that it goes to.
  for field = 22, 25 do
    if job[field] ~= job[field] then error("not a time") end
  end
  if not stateNames[job[STATE]] or job[8] ~= job[8] or job[9] ~= job[9] then error("not a state") end
  job.apart, job.input = marks % 2 == APART, string.sub(rest, BACKSIZE + size + 1)
  return job
end

local function readJobs(ids)
  readRests(ids)
  readFronts(ids)
end

-- What the place where a job was found says of it, for one whose record does not: seq, queue and name.
local hints = {}

local function hint(member, group)
  local seq = apart(">I6", member)
  if seq then hints[idOf(member)] = { seq[1], group and group.queue, group and group.name } end
end

-- What is left of a job whose record cannot be read. It is dead, since its guarantee is unknown; if it had ended before,
-- it stays so. `was` is how it was counted, nil if that is unknown.
local function salvage(id, front, rest)
  local head, back = front and apart(FRONT, front), apart(">BI6H", rest or "")
  local was, queue, name = not front and WAITING or nil, "", ""
  local job = { DEAD, 0, 0, 0, 0, 0, 0, huge, now, "", "", 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, now, now, now, huge, id = id }
  if head and stateNames[head[1]] then
    was, queue, name = head[1], head[11], head[12]
    job[STATE], job[ATTEMPT], job[TOKEN], job[SETTLED] = was >= SUCCEEDED and was or DEAD, head[5], head[6], head[7]
    if was >= SUCCEEDED and head[9] == head[9] then job[FINISHEDAT] = head[9] end
    job[SEQ] = head[10] * BLOCKSIZE
  else
    local names = rest and apart(">Hc0Hc0", string.sub(rest, BACKSIZE + 1))
    if names then
      queue, name = names[1], names[2]
    end
  end
  if back then
    job[SEQ], job[SLOT] = back[2], back[3]
  end
  local hinted = hints[id] or {}
  job[SEQ], queue, name = hinted[1] or job[SEQ], hinted[2] or queue, hinted[3] or name
  local numbers = apart(BACK, rest or "")
  if numbers and numbers[4] == 1 then job[RELAYED] = 1 end
  job.tail, job.apart, job.input = { queue, name, ATMOSTONCE, 1, 1, 0, 0, "" }, false, "null"
  job.rare = { unreadable = true, reason = "unreadable: its record was cut short or overwritten" }
  job[REST], job.isBroken, job.was = "", true, was
  return job
end

-- The job, or false. One that cannot be read must not stop a script that works on others, too: scripts that change jobs put it among the
-- dead (quarantine.lua), the others show what is left of it.
local function jobOf(id)
  local job = known[id]
  if job then return job end
  if rests[id] == nil then rests[id] = call("HGET", JOBS, id) end
  if fronts[id] == nil then fronts[id] = call("HGET", FRONTS, id) end
  local front, rest = fronts[id], rests[id]
  if not rest and not front then return false end
  local isWhole, found = pcall(unpackJob, id, front, rest)
  if not isWhole then found = salvage(id, front, rest) end
  known[id] = found
  if not isWhole and rare.quarantine then rare.quarantine(found) end
  return found
end

local function setInput(job, input)
  job.apart = #input > MAXINSIDE
  job.input = job.apart and "" or input
  if job.apart then call("HSET", INPUTS, job.id, input) end
  changed[job.id] = job
end

local function isTerminal(state)
  return state >= SUCCEEDED
end

local function mayExpire(job)
  return job[ATTEMPT] == 0 and job[EXPIREAT] < huge
end

-- Not started in time: it is never claimed any more, and the next reap ends it.
local function isExpired(job)
  return job[EXPIREAT] <= now and job[ATTEMPT] == 0 and job[STATE] <= WAITING
end
