-- uses: base record notices places aliases job resolve lines gates policy states index end quarantine search select
-- Cancels jobs that are waiting or blocked; asks active ones to stop.
-- ARGV and answer: shared/select.lua. Outcomes: 0 unknown, 1 cancelled, 2 requested, 3 terminal.
-- Promise: an active job is asked once, and any end other than success is `cancelled`.

local function cancel(job)
  if isTerminal(job[STATE]) then return 3 end
  if job[STATE] ~= ACTIVE then
    cancelIdle(job, reason)
    return 1
  end
  if job[CANCEL] == 0 then
    tell(job, lines.cancelRequested, reason)
    job[CANCEL] = 1
    setReason(job, reason)
  end
  notices.cancels[#notices.cancels + 1] = job.id
  return 2
end

local answer = forEachSelected(cjson.decode(ARGV[2]), openStates, cancel)
flush()
publish()
return answer
