-- uses: base record notices places aliases job resolve lines gates policy states index end quarantine unique search select
-- Sends dead and lost jobs back to waiting.
-- ARGV and answer: shared/select.lua. Outcomes: 0 unknown, 1 redriven, 2 held, 3 refused.
-- Promise: a job whose unique key another one holds stays where it is; otherwise it takes the key again.

local function redrive(job)
  if not redrivableStates[job[STATE]] then return 3 end
  local key = rareOf(job).uniqueKey
  if key then
    local holder = uniqueHolder(key)
    if holder and holder.id ~= job.id then return 2 end
    call("HSET", P .. "uniques", key, job.id)
    place(P .. "heldback", job.id, false)
  end
  tell(job, lines.redriven, reason)
  leave(job)
  job[STATE], job[RUNAT], job[ATTEMPT], job[CRASHES] = WAITING, now, 0, 0
  job[EXPIREAT], job[FINISHEDAT] = huge, huge
  setReason(job, nil)
  local tail = changeTail(job)
  tail[REDRIVES] = tail[REDRIVES] + 1
  enter(job)
  return 1
end

local answer = forEachSelected(cjson.decode(ARGV[2]), redrivableStates, redrive)
flush()
publish()
return answer
