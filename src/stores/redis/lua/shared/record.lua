-- How a job is kept: in the hash `jobs`, by its id, a record of numbers and short texts; its input is in the hash `inputs`.
-- src/stores/redis/record.ts reads and writes the same layout.

-- First what a claim and a finish change, so that they need not take the rest apart; SPECIAL is 1 where there is more to it than that.
local FRONT = ">BBBBI4I4I4ddHc0I4c0"
local STATE, CANCEL, SPECIAL, AHEAD, ATTEMPT, TOKEN, SETTLED, CLAIMEDAT, FINISHEDAT, CLAIMER, RESULT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
local BACK = ">BBBBBHHHI6i4dddd"
local HEAD = FRONT .. string.sub(BACK, 2)
local RELAYED, KEYED, PARENT, ALIASED, TRAILED, CRASHES, MAXCRASHES, SLOT, SEQ, PRIORITY = 12, 13, 14, 15, 16, 17, 18, 19, 20, 21
local RUNAT, FIREAT, ENQUEUEDAT, EXPIREAT, REST = 22, 23, 24, 25, 26
-- Where the back has its seq, and how long it is.
local SEQPLACE, BACKSIZE = 11, 53

-- A record whose texts are all empty.
local SHORTEST = 116

-- What follows the head is mostly the same for all jobs of a definition, so it is taken apart once.
local TAIL = ">Hc0Hc0BI4I4I4I4I4c0"
local QUEUE, NAME, DELIVERY, ATTEMPTS, VERSION, REDRIVES, ROLLBACKS, RARE = 1, 2, 3, 4, 5, 6, 7, 8

local BLOCKED, WAITING, ACTIVE, SUCCEEDED, DEAD, LOST, CANCELLED = 1, 2, 3, 4, 5, 6, 7
local stateNames = { "blocked", "waiting", "active", "succeeded", "dead", "lost", "cancelled" }
local ATMOSTONCE = 1

local JOBS, INPUTS = P .. "jobs", P .. "inputs"

local tails = {}

-- Nil where it is cut short.
local function readTail(text)
  local tail = tails[text]
  if not tail then
    tail = { pcall(struct.unpack, TAIL, text) }
    if not table.remove(tail, 1) then return nil end
    tails[text] = tail
  end
  return tail
end

-- What a job's definition says, and what few jobs have. Only for reading: changeTail gives one to write to.
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

-- Keys, reasons, errors and the like, by name. Only for reading: changeRare gives one to write to.
local function rareOf(job)
  local rare = job.rare
  if not rare then
    local text = tailOf(job)[RARE]
    if text == "" then
      rare = {}
    else
      -- What something else has written there must not stop a script that works on others, too.
      local isJson, value = pcall(cjson.decode, text)
      rare = isJson and type(value) == "table" and value or { unreadable = true }
    end
    job.rare = rare
  end
  return rare
end

local function hasRare(job)
  if job.rare then return next(job.rare) ~= nil end
  return tailOf(job)[RARE] ~= ""
end

local function changeRare(job)
  changeTail(job)
  return rareOf(job)
end

-- Who settled the last token stays known, also when another holds the job now.
local function setHolder(job, claimer)
  if job[SETTLED] > 0 and job[CLAIMER] ~= claimer and not rareOf(job).settledBy then
    changeRare(job).settledBy = job[CLAIMER]
  end
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
  local rare = rareOf(job)
  return (rare.reason or rare.settledBy or rare.debounceKey or rare.kept) and 1 or 0
end

local function pack(job)
  local claimer, result = job[CLAIMER], job[RESULT]
  return struct.pack(
    FRONT, job[1], job[2], isSpecial(job), job[4], job[5], job[6], job[7], job[8], job[9], #claimer, claimer, #result, result
  ) .. struct.pack(
    BACK, job[12], job[13], job[14], job[15], job[16], job[17], job[18], job[19], job[20], job[21], job[22], job[23],
    job[24], job[25]
  ) .. packTail(job)
end

local function unpackJob(id, text)
  local job = { struct.unpack(HEAD, text) }
  -- The last value is where the rest begins.
  job[REST] = string.sub(text, job[REST])
  if not readTail(job[REST]) then error("cut short") end
  job.id = id
  return job
end

-- Records that this script has read or written (false: there is none), jobs that it has taken apart, and which of them it changed.
local texts, known, changed = {}, {}, {}
-- Records that were written without taking them apart: id and record in turn.
local written = {}

local function readJobs(ids)
  local missing = {}
  for n = 1, #ids do
    if texts[ids[n]] == nil then missing[#missing + 1] = ids[n] end
  end
  local found = hashValues(JOBS, missing)
  for n = 1, #missing do
    local text = found[n]
    -- What is too short to be a record is none.
    texts[missing[n]] = text and #text >= SHORTEST and text
  end
end

-- The job, or false.
local function jobOf(id)
  local job = known[id]
  if job then return job end
  local text = texts[id]
  if text == nil then
    text = call("HGET", JOBS, id)
    texts[id] = text
  end
  if not text then return false end
  -- A record that is cut short is as good as none: it must not stop a script that works on others, too.
  local isWhole, found = pcall(unpackJob, id, text)
  if not isWhole then return false end
  known[id] = found
  return found
end

-- The record of a job that nobody has taken apart, or nil.
local function untouched(id)
  return not known[id] and texts[id] or nil
end

local function rewrite(id, text)
  texts[id] = text
  written[#written + 1] = id
  written[#written + 1] = text
end

local function flushJobs()
  local list = written
  for id, job in pairs(changed) do
    list[#list + 1] = id
    list[#list + 1] = pack(job)
  end
  callMany("HSET", JOBS, list, 2)
  written, changed = {}, {}
end

-- Absorbed and debounced ids, with the job that stands for each; false where there is none.
local ALIASES = P .. "aliases"
local aliases, noAliases = {}, nil

local function aliasOf(id)
  if noAliases == nil then noAliases = call("EXISTS", ALIASES) == 0 end
  if noAliases then return false end
  if aliases[id] == nil then aliases[id] = call("HGET", ALIASES, id) end
  return aliases[id]
end

local function setAlias(id, job)
  call("HSET", ALIASES, id, job.id)
  call("SADD", P .. "aliasesof:" .. job.id, id)
  aliases[id], noAliases = job.id, false
  job[ALIASED] = 1
  changed[job.id] = job
end

-- The job that an id stands for, itself or as an alias.
local function resolve(id)
  local job = jobOf(id)
  if job then return job end
  local alias = aliasOf(id)
  return alias and jobOf(alias)
end

local function isTerminal(state)
  return state >= SUCCEEDED
end

local function mayExpire(job)
  return job[ATTEMPT] == 0 and job[EXPIREAT] < huge
end

-- Not started in time: it is never claimed any more, and the next reap says so.
local function isExpired(job)
  return job[EXPIREAT] <= now and job[ATTEMPT] == 0 and job[STATE] <= WAITING
end

-- One crash short of poison: it runs alone in its process.
local function isFragile(job)
  return job[CRASHES] > 0 and job[CRASHES] >= job[MAXCRASHES] - 1
end
