-- uses: base record notices lines gates index end holder finish answer limits sources claim
-- Ends claims, then takes new jobs: finish.lua and claim.lua in one trip.
-- ARGV[2] the claim as claim.lua has it, ARGV[3] how many claims to end, ARGV[4] their frames.
-- Promise: both, or, where the core refuses an outcome, neither.
-- Answers two bytes for each claim that was to end in one text, then what claim.lua answers.

local params = cjson.decode(ARGV[2])
local list = readFinishes(ARGV[4], 1, tonumber(ARGV[3]))
local refused = refusedFinish(params.claimer, list, notRelayed)
if refused then return redis.error_reply("REFUSED " .. refused) end
local finished = finishAll(params.claimer, list, notRelayed, finishSwiftly)
flush()
local claimed = claim(params)
flush()
publish()
table.insert(claimed, 1, finished)
return claimed
