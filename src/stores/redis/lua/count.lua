-- uses: base record notices places job lines gates policy index search
-- Counts jobs by state, queue and name, a bounded piece at a time.
-- ARGV[2] JSON: { filter, cursor }, or { } for all jobs, which are already counted.
-- Answers where to continue (0: nowhere), then for each group its count, state, queue and name.

local params, groups, frames, cursor = cjson.decode(ARGV[2]), {}, {}, 0
if params.filter then
  local found
  found, cursor = search(readFilter(params.filter), params.cursor, false, huge)
  for _, job in ipairs(found) do
    local tail = tailOf(job)
    local group = job[STATE] .. SEPARATOR .. tail[QUEUE] .. SEPARATOR .. tail[NAME]
    groups[group] = (groups[group] or 0) + 1
  end
else
  local counts = call("HGETALL", P .. "counts")
  for n = 1, #counts, 2 do
    local amount = tonumber(counts[n + 1])
    if stateNames[tonumber(string.sub(counts[n], 1, 1))] and amount == amount then groups[counts[n]] = amount end
  end
end
for group, amount in pairs(groups) do
  local queue, name = splitGate(string.sub(group, 3))
  frames[#frames + 1] = struct.pack(">dBHc0Hc0", amount, tonumber(string.sub(group, 1, 1)), #queue, queue, #name, name)
end
return struct.pack(">d", cursor) .. table.concat(frames)
