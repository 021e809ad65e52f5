-- What a person or a later enqueue may change in a waiting job.

-- What changes with a job's time: an occurrence keeps its nominal one, and an expiry moves with it.
local function move(job, runAt)
  job[EXPIREAT] = job[EXPIREAT] + runAt - job[RUNAT]
  job[RUNAT] = runAt
  if not rareOf(job).schedule then job[FIREAT] = runAt end
end

local function setKeys(job, concurrencyKey, rateKey)
  local rare = changeRare(job)
  rare.concurrencyKey, rare.rateKey = concurrencyKey, rateKey
  job[KEYED] = (concurrencyKey or rateKey) and 1 or 0
end
