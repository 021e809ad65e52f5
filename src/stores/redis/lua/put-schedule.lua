-- uses: base notices schedule ledger
-- Creates or edits a schedule, and writes what was skipped while it was paused.
-- ARGV[2] its key, ARGV[3] the version that this is based on (-1: there must be none yet), ARGV[4] paused (1 or 0), ARGV[5] nextAt or
-- "inf", ARGV[6] spec, ARGV[7] job, ARGV[8] the node, ARGV[9] how many rows for the ledger, ARGV[10] their frames (shared/ledger.lua),
-- ARGV[11] the nextAt that this is based on or "inf".
-- Promise: it is written only if version and nextAt still match, and its version has never been used. An existing row stays.
-- Answers { put (1 or 0), the schedule as it is now or "" }.

local key, position = ARGV[2], 1
local old, text = readSchedule(key)
local function instant(argument)
  return argument == "inf" and huge or tonumber(argument)
end
if (old and old.version or -1) ~= tonumber(ARGV[3]) or old and old.nextAt ~= instant(ARGV[11]) then return { 0, text } end
for _ = 1, tonumber(ARGV[9]) do
  local one
  one, position = readOccurrence(ARGV[10], position)
  if mayWrite(key, one.fireAt, false) then writeOccurrence(key, ARGV[8], one, "") end
end
local one = old or { fired = 0, createdAt = now, lastJobId = "" }
one.paused, one.nextAt = tonumber(ARGV[4]), instant(ARGV[5])
local version = call("HINCRBY", P .. "scheduleversions", key, 1)
if old and version <= old.version then
  version = old.version + 1
  call("HSET", P .. "scheduleversions", key, version)
end
one.version, one.updatedAt = version, now
one.spec, one.job = ARGV[6], ARGV[7]
text = writeSchedule(key, one)
notices.schedules = true
publish()
return { 1, text }
