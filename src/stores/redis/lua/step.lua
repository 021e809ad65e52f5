-- uses: base record notices places finish sources claim
-- rarely: job lines gates index end holder settle limits keyed
-- Ends claims, then takes new jobs: finish.lua and claim.lua in one trip.
-- ARGV[2] the claim as claim.lua has it, ARGV[3] the claimer, ARGV[4] how many claims to end, ARGV[5] their frames.
-- Promise: both, or, where the core refuses an outcome, neither.
-- Answers two bytes for each claim that was to end, then what claim.lua answers.

local list = readFinishes(ARGV[5], tonumber(ARGV[4]))
local refused = not list.isPlain and rarely().refusedFinish(ARGV[3], list)
if refused then return redis.error_reply("REFUSED " .. refused) end
local finished = finishAll(ARGV[3], list, finishSwiftly)
-- What plain successes change is nothing that the claim looks at.
if not makeRare then flush() end
local answer = claim(ARGV[2])
flush()
publish()
return finished .. answer
