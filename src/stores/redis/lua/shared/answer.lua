-- Jobs as they leave the store: id, record and input of each, and for whole jobs also the parents that they wait for.

local function inputsOf(jobs)
  local ids = {}
  for n, job in ipairs(jobs) do ids[n] = job.id end
  return hashValues(INPUTS, ids)
end

local function claimedFrames(jobs)
  local texts, frames = inputsOf(jobs), {}
  for n, job in ipairs(jobs) do
    local record, input = pack(job), texts[n] or "null"
    frames[n] = struct.pack(">Hc0I4c0I4c0", #job.id, job.id, #record, record, #input, input)
  end
  return table.concat(frames)
end

local function storedFrames(jobs)
  local texts, frames = inputsOf(jobs), {}
  for n, job in ipairs(jobs) do
    local record, input = pack(job), texts[n] or "null"
    local parents = job[STATE] == BLOCKED and call("SMEMBERS", P .. "parents:" .. job.id) or {}
    local parts = { struct.pack(">Hc0I4c0I4c0H", #job.id, job.id, #record, record, #input, input, #parents) }
    for _, parent in ipairs(parents) do parts[#parts + 1] = struct.pack(">Hc0", #parent, parent) end
    frames[n] = table.concat(parts)
  end
  return table.concat(frames)
end
