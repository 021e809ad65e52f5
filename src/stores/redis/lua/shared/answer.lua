-- Jobs as they leave the store, whole or as they are dispatched.

-- Inputs that are stored separately, in the order of the jobs; "" for the others.
local function inputsApart(jobs)
  local ids, found = {}, {}
  for _, job in ipairs(jobs) do
    if job.apart then ids[#ids + 1] = job.id end
  end
  for n, input in ipairs(hashValues(INPUTS, ids)) do
    found[ids[n]] = input
  end
  return found
end

-- Id, whether its cancel is requested, attempt, token, rest, and its input if that is stored separately.
local function claimedFrames(jobs)
  local apart, frames = inputsApart(jobs), {}
  for n, job in ipairs(jobs) do
    local rest, input = job.whole or packRest(job), apart[job.id] or ""
    frames[n] = struct.pack(">Hc0BI4I4I4c0I4c0", #job.id, job.id, job[CANCEL], job[ATTEMPT], job[TOKEN], #rest, rest, #input, input)
  end
  return table.concat(frames)
end

-- Id, front, rest, input if that is stored separately, and the parents that it waits for.
local function storedFrames(jobs)
  local apart, frames = inputsApart(jobs), {}
  for n, job in ipairs(jobs) do
    local front, rest, input = packFront(job), packRest(job), apart[job.id] or ""
    local parents = job[STATE] == BLOCKED and call("SMEMBERS", P .. "parents:" .. job.id) or {}
    local parts = {
      struct.pack(">Hc0I4c0I4c0I4c0H", #job.id, job.id, #front, front, #rest, rest, #input, input, #parents),
    }
    for _, parent in ipairs(parents) do
      parts[#parts + 1] = struct.pack(">Hc0", #parent, parent)
    end
    frames[n] = table.concat(parts)
  end
  return table.concat(frames)
end
