-- How a partition of the relay is kept: in the hash `partitions`, by its number.

local PARTITION = ">HHdddHc0"
local FIRSTSLOT, ENDSLOT, EPOCH, LEASEUNTIL, MARK, OWNER = 1, 2, 3, 4, 5, 6

local function readPartition(number)
  local text = call("HGET", P .. "partitions", number)
  return text and { struct.unpack(PARTITION, text) }
end

local function writePartition(number, partition)
  call("HSET", P .. "partitions", number, struct.pack(
    PARTITION, partition[FIRSTSLOT], partition[ENDSLOT], partition[EPOCH], partition[LEASEUNTIL], partition[MARK],
    #partition[OWNER], partition[OWNER]
  ))
end

-- The partition, if it is the owner's under this epoch.
local function ownedBy(owner, number, epoch)
  local partition = readPartition(number)
  return partition and partition[OWNER] == owner and partition[EPOCH] == epoch and partition
end

local function isIn(job, partition)
  return job[SLOT] >= partition[FIRSTSLOT] and job[SLOT] < partition[ENDSLOT]
end
