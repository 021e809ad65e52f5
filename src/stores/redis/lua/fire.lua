-- uses: base record notices places aliases enqueue schedule ledger
-- rarely: job resolve lines gates policy index end quarantine unique change bound
-- Writes occurrences and their jobs, and advances their schedules, each independently.
-- ARGV[2] the node, ARGV[3] how many schedules, ARGV[4] how many occurrences in all, ARGV[5] kinds, then for each schedule a frame
-- (key, version, the nextAt that this is based on, where it advances to, replaceSkipped, how many occurrences), and for each of its
-- occurrences a frame (shared/ledger.lua) and, if it has one, its job's id and frame (shared/enqueue.lua).
-- Promise: for each schedule all of it, or nothing if version, nextAt or pause do not match. An occurrence in the ledger keeps its
-- row and adds no job, unless it was skipped and may be replaced.
-- Answers for each schedule a byte, 1 if it was fired, and then one for each of its occurrences: 1 added, 2 existing.

local FIRE = ">Hc0dddBI4"
local node, marks = ARGV[2], {}
local kinds, position = readKinds(ARGV[5], 1)

local function matches(schedule, version, nextAt, replaceSkipped)
  return schedule and (schedule.paused == 0 or replaceSkipped) and schedule.version == version and schedule.nextAt == nextAt
end

-- Returns whether it was written, and the id of its job.
local function plan(key, one, new, replaceSkipped)
  if not mayWrite(key, one.fireAt, replaceSkipped) then return false end
  local id = ""
  if new then
    local outcome, other = rarely().enqueueOne(new)
    if outcome ~= answers.unknownParent then id = other or new.id end
  end
  writeOccurrence(key, node, one, id)
  return true, id
end

local function fire(key, schedule, occurrences, advanceTo, replaceSkipped)
  for _, one in ipairs(occurrences) do
    local written, id = plan(key, one, one.new, replaceSkipped)
    marks[#marks + 1] = string.char(written and 1 or 2)
    if written and one.skipped == 0 then
      schedule.fired = schedule.fired + 1
      schedule.last = id
    end
  end
  if schedule.last and schedule.last ~= "" then schedule.lastJobId = schedule.last end
  schedule.nextAt = advanceTo
  writeSchedule(key, schedule)
end

reserveSeqs(tonumber(ARGV[4]))
for _ = 1, tonumber(ARGV[3]) do
  local key, version, nextAt, advanceTo, replaceSkipped, amount
  key, version, nextAt, advanceTo, replaceSkipped, amount, position = struct.unpack(FIRE, ARGV[5], position)
  local occurrences = {}
  for n = 1, amount do
    occurrences[n], position = readOccurrence(ARGV[5], position)
    if occurrences[n].hasJob == 1 then
      occurrences[n].new, position = rarely().readNewJob(ARGV[5], position, kinds)
    end
  end
  local schedule = readSchedule(key)
  if matches(schedule, version, nextAt, replaceSkipped == 1) then
    marks[#marks + 1] = string.char(1)
    fire(key, schedule, occurrences, advanceTo, replaceSkipped == 1)
  else
    marks[#marks + 1] = string.char(0)
  end
end
flush()
publish()
return table.concat(marks)
