-- Chooses the jobs of a cancel, a redrive or a remove, then processes them one by one.
-- ARGV[2] JSON: { ids } or { filter, limit, cursor }; ARGV[3] the reason, with a mark before it, or "".
-- Answers where to continue (0: nowhere), then for each its outcome and, if it was chosen by a filter, its id.

local reason = ARGV[3] ~= "" and string.sub(ARGV[3], 2) or nil

local function forEachSelected(selection, states, act)
  local frames = {}
  if selection.ids then
    readJobs(selection.ids)
    for n, id in ipairs(selection.ids) do
      local job = resolve(id)
      frames[n] = string.char(job and act(job) or 0)
    end
    return struct.pack(">d", 0) .. table.concat(frames)
  end
  local wanted = readFilter(selection.filter)
  if wanted.states then
    for state in pairs(wanted.states) do
      if not states[state] then wanted.states[state] = nil end
    end
  else
    wanted.states = states
  end
  -- One more than is processed shows whether there are more.
  local found, cursor = search(wanted, selection.cursor, false, selection.limit + 1)
  if #found > selection.limit then
    found[#found] = nil
    cursor = found[#found] and found[#found][SEQ] or 0
  end
  for n, job in ipairs(found) do
    frames[n] = struct.pack(">BHc0", act(job), #job.id, job.id)
  end
  return struct.pack(">d", cursor) .. table.concat(frames)
end
