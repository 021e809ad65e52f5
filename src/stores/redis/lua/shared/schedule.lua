-- How a schedule is kept: in the hash `schedules`, by its key. Those that are not paused and have a next time stand in the sorted
-- set `due` by it. The hash `scheduleversions` outlives them, so that no version of a key comes twice.

local SCHEDULE = ">BdddddHc0I4c0I4c0"
local SCHEDULES = P .. "schedules"

-- The schedule, or nil; and as it is kept.
local function readSchedule(key)
  local text = call("HGET", SCHEDULES, key)
  if not text then return nil, "" end
  local one = {}
  one.paused, one.nextAt, one.version, one.fired, one.createdAt, one.updatedAt, one.lastJobId, one.spec, one.job =
    struct.unpack(SCHEDULE, text)
  return one, text
end

local function writeSchedule(key, one)
  local text = struct.pack(
    SCHEDULE, one.paused, one.nextAt, one.version, one.fired, one.createdAt, one.updatedAt, #one.lastJobId, one.lastJobId,
    #one.spec, one.spec, #one.job, one.job
  )
  call("HSET", SCHEDULES, key, text)
  if one.paused == 0 and one.nextAt < huge then
    call("ZADD", P .. "due", one.nextAt, key)
  else
    call("ZREM", P .. "due", key)
  end
  return text
end
