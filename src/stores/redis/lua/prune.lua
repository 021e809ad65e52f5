-- uses: base record notices places aliases job lines gates policy index unique forget
-- Forgets terminal jobs past their retention, old rows of the ledger, and nodes, windows and claimers that are no longer needed.
-- ARGV[2] JSON: { kept: [[state, ms]], nodesMs, claimersMs, occurrencesMs, limit }.
-- Promise: a job that still holds its unique key stays until it does not; a job's trail and aliases are deleted with it.
-- Sorted sets used: ended:<state>, forgetting, keptends, and heldback, which has those that hold a key, so that they are not looked at again and again.
-- Answers how many jobs, and whether there is more.

local params = cjson.decode(ARGV[2])
local maxBystanders = 1000

local function pruneBystanders()
  local nodes = call("HGETALL", P .. "nodes")
  for n = 1, #nodes, 2 do
    local seen = apart(">d", nodes[n + 1])
    if not seen or seen[1] + params.nodesMs <= now then call("HDEL", P .. "nodes", nodes[n]) end
  end
  local over = call("ZRANGEBYSCORE", P .. "windowends", "-inf", now, "LIMIT", 0, maxBystanders)
  callMany("HDEL", P .. "windows", over, 1)
  callMany("ZREM", P .. "windowends", over, 1)
  local silent = call("ZRANGEBYSCORE", P .. "claimersseen", "-inf", now - params.claimersMs, "LIMIT", 0, maxBystanders)
  callMany("HDEL", P .. "claimers", silent, 1)
  callMany("ZREM", P .. "claimersseen", silent, 1)
end

-- By time of writing, key and fireAt. Returns whether there are more.
local function pruneLedger()
  local old = call("ZRANGEBYSCORE", P .. "ledger", "-inf", now - params.occurrencesMs, "LIMIT", 0, params.limit + 1)
  local more = table.remove(old, params.limit + 1) ~= nil
  for _, member in ipairs(old) do
    local fireAt = tonumber(string.sub(member, -16))
    if fireAt then call("ZREMRANGEBYSCORE", P .. "occurrences:" .. string.sub(member, 1, -18), fireAt, fireAt) end
  end
  callMany("ZREM", P .. "ledger", old, 1)
  return more
end

-- Moves those whose key is free by now back to the others.
local function takeBack()
  local free = call("ZRANGEBYSCORE", HELDBACK, "-inf", now, "LIMIT", 0, maxBystanders)
  for _, id in ipairs(free) do
    local job = jobOf(id)
    call("ZREM", HELDBACK, id)
    if job and isTerminal(job[STATE]) then
      local key, score = endedPlace(job)
      call("ZADD", key, score, id)
      if key ~= FORGETTING then call("ZREM", KEPTENDS, id) end
    end
  end
end

local function holdBack(job)
  call("ZADD", HELDBACK, rareOf(job).uniqueUntil, job.id)
  call("ZADD", KEPTENDS, job[FINISHEDAT], job.id)
end

-- Forgets the jobs of a bundle, and returns how many were looked at: a job that was forgotten, or has ended again, is skipped.
local function pruneBundle(ids, key, lastScore)
  readJobs(ids)
  for n, id in ipairs(ids) do
    local job = jobOf(id)
    if job and isTerminal(job[STATE]) then
      local own, score = endedPlace(job)
      if own == key and score <= lastScore then
        if #forgotten >= params.limit then return n - 1 end
        if holdsUniqueKey(job) then
          holdBack(job)
        else
          forget(job)
        end
      end
    end
  end
  return #ids
end

-- Whether there are more in the set with a score up to this one. Jobs that were forgotten before count for little, but not for nothing.
local lookedAt = 0
local function pruneSet(key, lastScore)
  while lookedAt <= params.limit * 10 do
    local found = call("ZRANGEBYSCORE", key, "-inf", lastScore, "WITHSCORES", "LIMIT", 0, 100)
    if not found[1] then return false end
    for n = 1, #found, 2 do
      local ids = idsIn(found[n])
      local looked = pruneBundle(ids, key, lastScore)
      lookedAt = lookedAt + looked
      if looked < #ids then
        if looked > 0 then
          call("ZREM", key, found[n])
          call("ZADD", key, found[n + 1], table.concat(ids, "\n", looked + 1))
        end
        return true
      end
      call("ZREM", key, found[n])
    end
  end
  return true
end

pruneBystanders()
local more = pruneLedger()
takeBack()
for _, kept in ipairs(params.kept) do
  more = pruneSet(endedKey(kept[1]), now - kept[2]) or more
end
more = pruneSet(FORGETTING, now) or more
flushForgotten()
flush()
return { #forgotten, more and 1 or 0 }
