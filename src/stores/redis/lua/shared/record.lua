-- How a job is kept: by its id, in two hashes. src/stores/redis/rows.ts reads the same layout.
--
--   fronts   what a claim and a finish change. Jobs that are claimed or finished together mostly share it. A job without one is
--            fresh: it waits, was never claimed, and is not special.
--   jobs     the rest: numbers, what its definition says, and its input
--   inputs   inputs that are too long to be copied whenever a job is read

-- SPECIAL is 1 if a claim or a finish must do more than change the front. The block, queue and name are there for the counts.
local FRONT = ">BBBBI4I4I4ddI6Hc0Hc0Hc0I4c0"
local STATE, CANCEL, SPECIAL, AHEAD, ATTEMPT, TOKEN, SETTLED, CLAIMEDAT, FINISHEDAT, CLAIMER, RESULT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
-- First marks: 1 if the input is in `inputs`, 2 for at-most-once. Then seq and slot, which no other job has; last the length of the tail.
local BACK = ">BI6HBBBBBHHi4ddddI4"
local RELAYED, KEYED, PARENT, ALIASED, TRAILED, CRASHES, MAXCRASHES, SLOT, SEQ, PRIORITY = 12, 13, 14, 15, 16, 17, 18, 19, 20, 21
local RUNAT, FIREAT, ENQUEUEDAT, EXPIREAT, REST = 22, 23, 24, 25, 26
local BACKSIZE = 58
local APART, ONCE = 1, 2
-- A rest whose strings are all empty.
local SHORTEST = 83
local SHORTESTFRONT = 48

-- The tail is mostly the same for all jobs of a definition, so it is decoded once.
local TAIL = ">Hc0Hc0BI4I4I4I4I4c0"
local QUEUE, NAME, DELIVERY, ATTEMPTS, VERSION, REDRIVES, ROLLBACKS, RARE = 1, 2, 3, 4, 5, 6, 7, 8

local BLOCKED, WAITING, ACTIVE, SUCCEEDED, DEAD, LOST, CANCELLED = 1, 2, 3, 4, 5, 6, 7
local ATMOSTONCE = 1

-- Jobs are stored in enqueue order, in blocks of this size.
local BLOCKSIZE = 256
-- Longer inputs are stored separately.
local MAXINSIDE = 1000

local FRONTS, JOBS, INPUTS = P .. "fronts", P .. "jobs", P .. "inputs"

local tails = {}

-- Nil if it is truncated.
local function readTail(text)
  local tail = tails[text]
  if not tail then
    tail = { pcall(struct.unpack, TAIL, text) }
    if not table.remove(tail, 1) then return nil end
    tails[text] = tail
  end
  return tail
end

-- What this script has read or written of jobs (false: there is none), jobs that it has decoded, and which of them it changed.
local fronts, rests, known, changed = {}, {}, {}, {}
-- What is written without decoding a job: id and string in turn.
local writtenFronts, writtenRests = {}, {}

local function readTexts(key, texts, ids)
  local missing = ids
  if next(texts) then
    missing = {}
    for n = 1, #ids do
      if texts[ids[n]] == nil then missing[#missing + 1] = ids[n] end
    end
  end
  local found = hashValues(key, missing)
  for n = 1, #missing do
    texts[missing[n]] = found[n]
  end
end

local function readFronts(ids)
  readTexts(FRONTS, fronts, ids)
end

local function readRests(ids)
  readTexts(JOBS, rests, ids)
end

local function writeFront(id, text)
  fronts[id] = text
  local place = #writtenFronts
  writtenFronts[place + 1], writtenFronts[place + 2] = id, text
end

local function flushJobs()
  if next(changed) then rare.packChanged() end
  callMany("HSET", JOBS, writtenRests, 2)
  callMany("HSET", FRONTS, writtenFronts, 2)
  writtenFronts, writtenRests = {}, {}
end
