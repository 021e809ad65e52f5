-- uses: base record notices places finish sources claim
-- rarely: job lines gates policy index end quarantine holder settle limits keyed
-- Ends claims, then takes new jobs: finish.lua and claim.lua in one trip.
-- ARGV[2] the claim in the form of claim.lua, ARGV[3] the claimer, ARGV[4] how many claims to end, ARGV[5] their frames.
-- Promise: both, or, if the core refuses an outcome, neither.
-- Answers two bytes for each claim to be ended, then the answer of claim.lua.

local list = readFinishes(ARGV[5], tonumber(ARGV[4]))
local refused = not list.isPlain and rarely().refusedFinish(ARGV[3], list)
if refused then return redis.error_reply("REFUSED " .. refused) end
local finished = finishAll(ARGV[3], list, finishFast)
-- The claim reads nothing that plain successes change.
if not makeRare then flush() end
local answer = claim(ARGV[2])
flush()
publish()
return finished .. answer
