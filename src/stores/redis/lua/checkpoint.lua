-- uses: base record notices places finish job lines gates policy index end quarantine holder settle answer partition relay
-- Settles the named batch of a partition, moves its mark and names the next batch.
-- ARGV[2] the owner, ARGV[3] partition, ARGV[4] epoch, ARGV[5] the mark or "", ARGV[6] how many to settle, ARGV[7] their frames
-- (shared/finish.lua), ARGV[8] JSON: [[id, version]] to be named, ARGV[9] how long before its time a job may be named.
-- Promise: nothing happens under a stale epoch. Jobs that are no longer waiting, due by then, unexpired, of this version and in this partition
-- are left out; jobs that this owner has already named are answered again.
-- Answers "" when stale; else a mark, two bytes for each claim to be settled, then the named jobs' frames.

local owner = ARGV[2]
local partition = ownedBy(owner, ARGV[3], tonumber(ARGV[4]))
if not partition then return "" end

local function mine(job)
  return job[RELAYED] == 1 and isIn(job, partition)
end

local function name(job)
  if job[STATE] == ACTIVE then return job[CLAIMER] == owner end
  if job[STATE] ~= WAITING or job[RUNAT] > fast.dueBy or isExpired(job) then return false end
  leave(job)
  setReason(job, nil)
  setHolder(job, owner)
  job[STATE], job[ATTEMPT] = ACTIVE, job[ATTEMPT] + 1
  enter(job)
  return true
end

fast.owner, fast.partition, fast.dueBy = owner, partition, now + tonumber(ARGV[9])
local list = readFinishes(ARGV[7], tonumber(ARGV[6]))
readRests(list.ids)
local refused = rare.refusedFinish(owner, list, mine)
if refused then return redis.error_reply("REFUSED " .. refused) end
local finished = finishAll(owner, list, settleFast, mine)
if ARGV[5] ~= "" then
  partition[MARK] = tonumber(ARGV[5])
  writePartition(ARGV[3], partition)
end
local wanted, ids, named = cjson.decode(ARGV[8]), {}, {}
for n, one in ipairs(wanted) do
  ids[n] = one[1]
end
readJobs(ids)
for _, one in ipairs(wanted) do
  local job = nameFast(one[1], one[2])
  if not job then
    job = jobOf(one[1])
    job = job and mine(job) and tailOf(job)[VERSION] == one[2] and name(job) and job
  end
  if job then named[#named + 1] = job end
end
countFast()
flush()
publish()
return "=" .. finished .. claimedFrames(named)
