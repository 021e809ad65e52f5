-- uses: base
-- Adds figures to the minutes and hours of the history.
-- ARGV[2] the node, ARGV[3] its sequence, ARGV[4] JSON: [[level, how long ago, queue, name, figures...]], ARGV[5] how many of the figures add
-- up; of the others the highest stays.
-- Promise: a sequence that is not higher than the node's last one adds nothing.
-- Hash `history:<level>-<step>:<at>`: queue, a line break and name -> the figures, packed; sorted set `historyat:<level>-<step>`: the steps
-- there are; hash `historywriters`: node -> sequence and time of its last call.

local sequence, summed = tonumber(ARGV[3]), tonumber(ARGV[5])
local writer = call("HGET", P .. "historywriters", ARGV[2])
local last = writer and apart(">d", writer)
if last and last[1] >= sequence then return end
call("HSET", P .. "historywriters", ARGV[2], struct.pack(">dd", sequence, now))

local entries = cjson.decode(ARGV[4])

local function addAll(step, stepMs)
  local steps = {}
  for _, entry in ipairs(entries) do
    local at = math.floor((now - entry[2]) / stepMs) * stepMs
    local series = entry[1] .. "-" .. step
    local id = series .. ":" .. textOf(at)
    steps[id] = steps[id] or { series = series, at = at, rows = {} }
    local rows, field = steps[id].rows, entry[3] .. "\n" .. entry[4]
    local row = rows[field]
    if not row then
      rows[field] = { unpack(entry, 5) }
    else
      for n = 1, #row do
        row[n] = n <= summed and row[n] + entry[n + 4] or math.max(row[n], entry[n + 4])
      end
    end
  end
  for id, one in pairs(steps) do
    local key, rows, fields, written = P .. "history:" .. id, one.rows, {}, {}
    for field in pairs(rows) do
      fields[#fields + 1] = field
    end
    for index, known in ipairs(hashValues(key, fields)) do
      local row = rows[fields[index]]
      if known then
        -- What something else has written there is not counted.
        local isPacked, figures = pcall(cmsgpack.unpack, known)
        for n = 1, isPacked and type(figures) == "table" and #row or 0 do
          local figure = tonumber(figures[n]) or 0
          row[n] = n <= summed and row[n] + figure or math.max(row[n], figure)
        end
      end
      written[#written + 1] = fields[index]
      written[#written + 1] = cmsgpack.pack(row)
    end
    callMany("HSET", key, written, 2)
    call("ZADD", P .. "historyat:" .. one.series, one.at, textOf(one.at))
  end
end

addAll("minute", 60000)
addAll("hour", 3600000)
