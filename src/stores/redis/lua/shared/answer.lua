-- Jobs as they leave the store: id, record and input of each, and for whole jobs also the parents that they wait for.

local function inputsOf(jobs)
  local ids = {}
  for n, job in ipairs(jobs) do ids[n] = job.id end
  return hashValues(INPUTS, ids)
end

-- The same in parts, behind what the answer has already: joining them would cost as much as making them.
local function claimedParts(jobs, answer)
  local found, place = inputsOf(jobs), #answer
  for n, job in ipairs(jobs) do
    answer[place + 1], answer[place + 2], answer[place + 3] = job.id, job.text or pack(job), found[n] or "null"
    place = place + 3
  end
  return answer
end

local function claimedFrames(jobs)
  local found, frames = inputsOf(jobs), {}
  for n, job in ipairs(jobs) do
    local record, input = job.text or pack(job), found[n] or "null"
    frames[n] = struct.pack(">Hc0I4c0I4c0", #job.id, job.id, #record, record, #input, input)
  end
  return table.concat(frames)
end

local function storedFrames(jobs)
  local found, frames = inputsOf(jobs), {}
  for n, job in ipairs(jobs) do
    local record, input = pack(job), found[n] or "null"
    local parents = job[STATE] == BLOCKED and call("SMEMBERS", P .. "parents:" .. job.id) or {}
    local parts = { struct.pack(">Hc0I4c0I4c0H", #job.id, job.id, #record, record, #input, input, #parents) }
    for _, parent in ipairs(parents) do parts[#parts + 1] = struct.pack(">Hc0", #parent, parent) end
    frames[n] = table.concat(parts)
  end
  return table.concat(frames)
end
