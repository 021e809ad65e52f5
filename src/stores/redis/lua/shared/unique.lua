-- Which job holds a unique key: the one that took it last, for a time or while it is not terminal. Hash `uniques`: key -> id.

local function holdsUniqueKey(job)
  local rare = rareOf(job)
  if not rare.uniqueKey then return false end
  if rare.uniqueUntil then return rare.uniqueUntil > now end
  return not isTerminal(job[STATE])
end

-- The job that holds a unique key now.
local function uniqueHolder(key)
  local id = call("HGET", P .. "uniques", key)
  local job = id and jobOf(id)
  return job and holdsUniqueKey(job) and job
end
