-- uses: base record answer partition
-- Takes partitions of the relay that are free or whose lease ran out, with what an earlier owner had named in them.
-- ARGV[2] JSON: { owner, leaseMs, partitions, want, slotCount, index, of }: this is Redis slot `index` of so many.
-- Promise: the first acquire decides how many there are; a partition has one owner, and its epoch rises with each grant.
-- Answers how many partitions there are, then for each grant a frame (partition, epoch, slots, mark) and its named jobs.

local params = cjson.decode(ARGV[2])
call("HSETNX", KEYS[1], "partitions", params.partitions)
local amount = tonumber(call("HGET", KEYS[1], "partitions"))

local function firstSlot(number)
  return math.floor(number * params.slotCount / amount)
end

local function namedIn(partition)
  local ids, jobs = call("ZRANGEBYSCORE", P .. "named", partition[FIRSTSLOT], "(" .. partition[ENDSLOT]), {}
  readJobs(ids)
  for n, id in ipairs(ids) do
    local job = jobOf(id)
    setHolder(job, params.owner)
    changed[id] = job
    jobs[n] = job
  end
  table.sort(jobs, function(a, b)
    if a[RUNAT] ~= b[RUNAT] then return a[RUNAT] < b[RUNAT] end
    return a[SEQ] < b[SEQ]
  end)
  return jobs
end

local frames, grants = {}, 0
for number = math.floor(params.index * amount / params.of), math.floor((params.index + 1) * amount / params.of) - 1 do
  local partition = readPartition(number) or { firstSlot(number), firstSlot(number + 1), 0, 0, huge, "" }
  if grants < params.want and (partition[OWNER] == "" or partition[LEASEUNTIL] <= now) then
    partition[OWNER], partition[EPOCH], partition[LEASEUNTIL] = params.owner, partition[EPOCH] + 1, now + params.leaseMs
    writePartition(number, partition)
    local named = namedIn(partition)
    frames[#frames + 1] = struct.pack(
      ">I4dHHdI4", number, partition[EPOCH], partition[FIRSTSLOT], partition[ENDSLOT], partition[MARK], #named
    ) .. claimedFrames(named)
    grants = grants + 1
  elseif partition[EPOCH] == 0 then
    writePartition(number, partition)
  end
end
flushJobs()
return struct.pack(">I4", amount) .. table.concat(frames)
