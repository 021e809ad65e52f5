-- Jobs by their own id or an alias.

local function setAlias(id, job)
  call("HSET", ALIASES, id, job.id)
  call("SADD", P .. "aliasesof:" .. job.id, id)
  aliases[id], noAliases = job.id, false
  job[ALIASED] = 1
  changed[job.id] = job
end

-- The job that an id refers to, directly or as an alias.
local function resolve(id)
  local job = jobOf(id)
  if job then return job end
  local alias = aliasOf(id)
  return alias and jobOf(alias)
end
