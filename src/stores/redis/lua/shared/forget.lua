-- Forgets jobs that have ended. A job's trail, aliases and key are deleted with it.

-- Ended jobs that hold a unique key, by when they release it.
local HELDBACK = P .. "heldback"

local forgotten, blocksLeft = {}, {}

local function forget(job)
  leave(job)
  forgotten[#forgotten + 1] = job.id
  if job[TRAILED] == 1 then call("DEL", P .. "trail:" .. job.id) end
  if job[ALIASED] == 1 then
    local key = P .. "aliasesof:" .. job.id
    callMany("HDEL", ALIASES, call("SMEMBERS", key), 1)
    call("DEL", key)
  end
  local key = rareOf(job).uniqueKey
  if key then
    if call("HGET", P .. "uniques", key) == job.id then call("HDEL", P .. "uniques", key) end
    call("ZREM", HELDBACK, job.id)
    call("ZREM", KEPTENDS, job.id)
  end
  local block = math.floor(job[SEQ] / BLOCKSIZE)
  call("LREM", P .. "block:" .. block, 1, job.id)
  blocksLeft[block] = true
  known[job.id], rests[job.id], fronts[job.id] = nil, false, false
end

local function flushForgotten()
  callMany("HDEL", JOBS, forgotten, 1)
  callMany("HDEL", FRONTS, forgotten, 1)
  callMany("HDEL", INPUTS, forgotten, 1)
  callMany("HDEL", P .. "unreadable", forgotten, 1)
  for block in pairs(blocksLeft) do
    if call("EXISTS", P .. "block:" .. block) == 0 then call("ZREM", P .. "blocks", block) end
  end
end
