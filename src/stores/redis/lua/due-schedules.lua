-- uses: base
-- Schedules whose next time has come, the oldest first. Sorted set used: due.
-- ARGV[2] how many at the most.
-- Answers the store's time and the earliest time after it (infinite for none), then keys and schedules in turn.

local keys = call("ZRANGEBYSCORE", P .. "due", "-inf", now, "LIMIT", 0, ARGV[2])
local later = call("ZRANGEBYSCORE", P .. "due", "(" .. now, "+inf", "WITHSCORES", "LIMIT", 0, 1)
local answer = { struct.pack(">dd", now, tonumber(later[2]) or huge) }
local texts = hashValues(P .. "schedules", keys)
for n, key in ipairs(keys) do
  answer[#answer + 1] = key
  answer[#answer + 1] = texts[n]
end
return answer
