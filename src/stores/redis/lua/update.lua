-- uses: base record notices places aliases job resolve lines gates policy states index end quarantine change
-- Changes a job that is waiting or blocked.
-- ARGV[2] JSON: { id, input?, runAt?, delayMs?, priority?, concurrencyKey?, rateKey? }; a key that is false is removed.
-- Promise: missing fields stay; the version rises.
-- Answers { outcome (0 unknown, 1 refused, 2 updated), state }.

local params = cjson.decode(ARGV[2])
local job = resolve(params.id)
if not job then return { 0, 0 } end
if not idleStates[job[STATE]] then return { 1, job[STATE] } end
tell(job, lines.updated)
leave(job)
local runAt = params.runAt or (params.delayMs and now + params.delayMs)
if runAt then move(job, runAt) end
if params.input then setInput(job, params.input) end
if params.priority then job[PRIORITY] = params.priority end
if params.concurrencyKey ~= nil or params.rateKey ~= nil then
  local rare, concurrencyKey, rateKey = rareOf(job), params.concurrencyKey, params.rateKey
  if concurrencyKey == nil then concurrencyKey = rare.concurrencyKey end
  if rateKey == nil then rateKey = rare.rateKey end
  setKeys(job, concurrencyKey or nil, rateKey or nil)
end
local tail = changeTail(job)
tail[VERSION] = tail[VERSION] + 1
enter(job)
flush()
publish()
return { 2, job[STATE] }
