-- uses: base record notices places aliases job resolve lines gates policy states index end quarantine unique forget search select
-- Forgets jobs that have ended, before their time.
-- ARGV and answer: shared/select.lua. Outcomes: 0 unknown, 1 deleted, 2 held, 3 refused.
-- Promise: a job that holds its unique key for a time stays until it does not; a job's trail and aliases are deleted with it.

local function remove(job)
  if not isTerminal(job[STATE]) then return 3 end
  if holdsUniqueKey(job) then return 2 end
  forget(job)
  return 1
end

local answer = forEachSelected(cjson.decode(ARGV[2]), endedStates, remove)
flushForgotten()
flush()
return answer
