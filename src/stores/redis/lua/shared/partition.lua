-- How a partition of the relay is kept: in the hash `partitions`, by its number.

local MAXSLOT = 1024
local PARTITION = ">HHdddHc0"
local FIRSTSLOT, ENDSLOT, EPOCH, LEASEUNTIL, MARK, OWNER = 1, 2, 3, 4, 5, 6

local function readPartition(number)
  local partition = apart(PARTITION, call("HGET", P .. "partitions", number))
  -- Something else has written it where its epoch cannot rise by one, or it has no slots: then it is made again.
  local isSound = partition
    and partition[EPOCH] >= 0
    and partition[EPOCH] < 2 ^ 52
    and partition[FIRSTSLOT] < partition[ENDSLOT]
    and partition[ENDSLOT] <= MAXSLOT
  return isSound and partition
end

local function writePartition(number, partition)
  call(
    "HSET",
    P .. "partitions",
    number,
    struct.pack(
      PARTITION,
      partition[FIRSTSLOT],
      partition[ENDSLOT],
      partition[EPOCH],
      partition[LEASEUNTIL],
      partition[MARK],
      #partition[OWNER],
      partition[OWNER]
    )
  )
end

-- Whether a node holds it. No lease is longer than longestLeaseMs: one that seems to be is damaged, and counts as expired.
local function isHeld(partition, longestLeaseMs)
  local leaseUntil = partition[LEASEUNTIL]
  return partition[OWNER] ~= "" and leaseUntil > now and leaseUntil <= now + longestLeaseMs
end

-- The partition, if the owner holds it under this epoch.
local function ownedBy(owner, number, epoch)
  local partition = readPartition(number)
  return partition and partition[OWNER] == owner and partition[EPOCH] == epoch and partition
end

local function isIn(job, partition)
  return job[SLOT] >= partition[FIRSTSLOT] and job[SLOT] < partition[ENDSLOT]
end
