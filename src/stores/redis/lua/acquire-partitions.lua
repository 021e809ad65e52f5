-- uses: base record notices places job lines gates index end quarantine answer partition
-- Takes partitions of the relay that are free or whose lease ran out, with the jobs that an earlier owner had named in them.
-- ARGV[2] JSON: { owner, leaseMs, longestLeaseMs, partitions, made, epoch, want, slotCount, index, of }: this is Redis slot `index` of
-- `of`. `made` is how many partitions the first slot has, and `epoch` the highest of all slots if they may be cut again, otherwise null.
-- Promise: a partition has one owner, and its epoch rises with each grant. The first acquire decides how many there are; a request for
-- more is remembered, and nothing is granted until none is held and they are cut again. A namespace in several slots is cut when
-- each has been found free, since none is granted in between.
-- Answers how many partitions there are, and should be, how many of this slot are held and their highest epoch; then for each grant a frame
-- (partition, epoch, slots, mark) and its named jobs.

local params = cjson.decode(ARGV[2])
local meta = call("HMGET", KEYS[1], "partitions", "wanted-partitions")
local wanted = math.max(tonumber(meta[2]) or 0, params.partitions)
local amount = tonumber(meta[1]) or tonumber(params.made) or wanted
if wanted ~= tonumber(meta[2]) then call("HSET", KEYS[1], "wanted-partitions", wanted) end
if not meta[1] then call("HSET", KEYS[1], "partitions", amount) end

local function firstSlot(number)
  return math.floor(number * params.slotCount / amount)
end

local function first(index)
  return math.floor(index * amount / params.of)
end

local held, epoch = 0, tonumber(params.epoch) or 0
for number = first(params.index), first(params.index + 1) - 1 do
  local partition = readPartition(number)
  if partition then
    epoch = math.max(epoch, partition[EPOCH])
    if isHeld(partition, params.longestLeaseMs) then
      held = held + 1
    elseif partition[OWNER] ~= "" and amount < wanted and params.of > 1 then
      -- It must not be renewed while the other slots are checked.
      partition[OWNER] = ""
      writePartition(number, partition)
    end
  end
end
if amount < wanted and held == 0 and (params.of == 1 or tonumber(params.epoch)) then
  amount = wanted
  call("HSET", KEYS[1], "partitions", amount)
  call("DEL", P .. "partitions")
end
local head = struct.pack(">I4I4I4d", amount, wanted, held, epoch)
if amount < wanted then return head end

local function namedIn(partition)
  local ids, jobs = call("ZRANGEBYSCORE", P .. "named", partition[FIRSTSLOT], "(" .. partition[ENDSLOT]), {}
  readJobs(ids)
  for _, id in ipairs(ids) do
    local job = jobOf(id)
    if job and job[STATE] == ACTIVE then
      setHolder(job, params.owner)
      changed[id] = job
      jobs[#jobs + 1] = job
    else
      place(P .. "named", id, false)
    end
  end
  table.sort(jobs, function(a, b)
    if a[RUNAT] ~= b[RUNAT] then return a[RUNAT] < b[RUNAT] end
    return a[SEQ] < b[SEQ]
  end)
  return jobs
end

local frames, grants = {}, 0
for number = first(params.index), first(params.index + 1) - 1 do
  local known = readPartition(number)
  -- No epoch of any partition is used twice, so a holder from before the cut is stale after it.
  local partition = known or { 0, 0, epoch, 0, huge, "" }
  -- They follow from how many partitions there are, whatever something else has written there.
  partition[FIRSTSLOT], partition[ENDSLOT] = firstSlot(number), firstSlot(number + 1)
  if grants < params.want and not isHeld(partition, params.longestLeaseMs) then
    partition[OWNER], partition[EPOCH], partition[LEASEUNTIL] = params.owner, partition[EPOCH] + 1, now + params.leaseMs
    writePartition(number, partition)
    local named = namedIn(partition)
    frames[#frames + 1] = struct.pack(
      ">I4dHHdI4",
      number,
      partition[EPOCH],
      partition[FIRSTSLOT],
      partition[ENDSLOT],
      partition[MARK],
      #named
    ) .. claimedFrames(named)
    grants = grants + 1
  elseif not known then
    writePartition(number, partition)
  end
end
flush()
publish()
return head .. table.concat(frames)
