-- uses: base
-- A piece of the history, summed by queue, by name or as a whole.
-- ARGV[2] the series, ARGV[3] and ARGV[4] from when, and until before when; ARGV[5] "queue", "name" or "" for the whole; ARGV[6] and ARGV[7] only
-- this queue and this name, "" for all; ARGV[8] how many of the figures add up; ARGV[9] about how many rows to look at.
-- Answers from when to continue, "" when there is no more, then for each point its time, its queue or name, and its figures as doubles.

local series, by, queue, name, summed = ARGV[2], ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8])
local left = tonumber(ARGV[9])
local answer = { "" }

local isWhole = by == "" and queue == "" and name == ""

local function groupOf(field)
  if isWhole then return "" end
  local cut = string.find(field, "\n", 1, true)
  if not cut then return nil end
  local ofQueue, ofName = string.sub(field, 1, cut - 1), string.sub(field, cut + 1)
  if (queue ~= "" and queue ~= ofQueue) or (name ~= "" and name ~= ofName) then return nil end
  return by == "queue" and ofQueue or by == "name" and ofName or ""
end

-- Whether this is what record-history.lua wrote.
local function areFigures(figures)
  if type(figures) ~= "table" or #figures < summed then return false end
  for _, figure in ipairs(figures) do
    if type(figure) ~= "number" then return false end
  end
  return true
end

local function addTo(groups, group, figures)
  local sum = groups[group]
  if not sum then
    groups[group] = figures
    return
  end
  for n = 1, math.min(#sum, #figures) do
    sum[n] = n <= summed and sum[n] + figures[n] or math.max(sum[n], figures[n])
  end
end

-- The only row of a step that can be asked for, where there is one.
local isOne = queue ~= "" and (name ~= "" or string.sub(series, 1, 6) == "queue-")
local only = isOne and queue .. "\n" .. name

local function rowsOf(key)
  if not only then return call("HGETALL", key) end
  local row = call("HGET", key, only)
  return row and { only, row } or {}
end

-- One more than could be looked at if each had one row: then there is more.
for _, at in ipairs(call("ZRANGEBYSCORE", P .. "historyat:" .. series, ARGV[3], "(" .. ARGV[4], "LIMIT", 0, left + 1)) do
  if left <= 0 then
    answer[1] = at
    break
  end
  local rows, groups = rowsOf(P .. "history:" .. series .. ":" .. at), {}
  left = left - math.max(1, #rows / 2)
  for n = 1, #rows, 2 do
    local group = groupOf(rows[n])
    local isPacked, figures = pcall(cmsgpack.unpack, rows[n + 1])
    if group and isPacked and areFigures(figures) then addTo(groups, group, figures) end
  end
  for group, sum in pairs(groups) do
    answer[#answer + 1] = at
    answer[#answer + 1] = group
    answer[#answer + 1] = struct.pack(">" .. string.rep("d", #sum), unpack(sum))
  end
end
return answer
