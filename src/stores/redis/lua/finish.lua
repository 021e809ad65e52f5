-- uses: base record notices places finish
-- rarely: job lines gates policy index end quarantine holder settle
-- Ends claims.
-- ARGV[2] the claimer, ARGV[3] how many, ARGV[4] their frames (shared/finish.lua).
-- Promise: each is written once, if the claim still belongs to the claimer; or nothing at all if the core refuses an outcome.
-- Answers two bytes for each, or the id of a refused one as an error.

local list = readFinishes(ARGV[4], tonumber(ARGV[3]))
local refused = not list.isPlain and rarely().refusedFinish(ARGV[2], list)
if refused then return redis.error_reply("REFUSED " .. refused) end
local answer = finishAll(ARGV[2], list, finishFast)
flush()
publish()
return answer
