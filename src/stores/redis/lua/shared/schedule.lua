-- How a schedule is kept: in the hash `schedules`, by its key. Those that are not paused and have a next time are in the sorted
-- set `due` by it. The hash `scheduleversions` outlives them, so no version of a key is used twice.

local SCHEDULE = ">BdddddHc0I4c0I4c0"
local SCHEDULES = P .. "schedules"

-- An instant as a Date would hold it. A planner reads it as one, and sends the time that its plan is based on.
local function instantIn(ms)
  if ms == huge or ms == -huge then return huge end
  ms = ms < 0 and math.ceil(ms) or math.floor(ms)
  return math.max(-8.64e15, math.min(8.64e15, ms))
end

-- The schedule, or nil; and its stored form.
local function readSchedule(key)
  local text = call("HGET", SCHEDULES, key)
  if not text then return nil, "" end
  local parts = apart(SCHEDULE, text)
  -- One that cannot be read has no rules and no time, so that nothing comes of it until it is put again.
  if not parts then parts = { 0, huge, 0, 0, now, now, "", "", "" } end
  local one =
    { paused = parts[1] == 1 and 1 or 0, nextAt = instantIn(parts[2]), version = parts[3], fired = parts[4], createdAt = parts[5] }
  one.updatedAt, one.lastJobId, one.spec, one.job = parts[6], parts[7], parts[8], parts[9]
  return one, text
end

local function writeSchedule(key, one)
  local text = struct.pack(
    SCHEDULE,
    one.paused,
    one.nextAt,
    one.version,
    one.fired,
    one.createdAt,
    one.updatedAt,
    #one.lastJobId,
    one.lastJobId,
    #one.spec,
    one.spec,
    #one.job,
    one.job
  )
  call("HSET", SCHEDULES, key, text)
  if one.paused == 0 and one.nextAt < huge then
    call("ZADD", P .. "due", one.nextAt, key)
  else
    call("ZREM", P .. "due", key)
  end
  return text
end
