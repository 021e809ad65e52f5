-- uses: base
-- Schedules whose next time has come, the oldest first. Sorted set used: due.
-- ARGV[2] maximum number of schedules.
-- Answers the store's time and the earliest time after it (infinite for none), then keys and schedules in turn.

local keys = call("ZRANGEBYSCORE", P .. "due", "-inf", now, "LIMIT", 0, ARGV[2])
local later = call("ZRANGEBYSCORE", P .. "due", "(" .. now, "+inf", "WITHSCORES", "LIMIT", 0, 1)
local answer = { struct.pack(">dd", now, tonumber(later[2]) or huge) }
local texts = hashValues(P .. "schedules", keys)
for n, key in ipairs(keys) do
  local head = texts[n] and apart(">Bd", texts[n])
  if not texts[n] then
    -- Something else has written it: there is no such schedule.
    call("ZREM", P .. "due", key)
  elseif head and math.floor(head[2]) > now then
    -- Its own time counts. A planner would find nothing due, and ask again at once.
    call("ZADD", P .. "due", math.floor(head[2]), key)
  else
    answer[#answer + 1] = key
    answer[#answer + 1] = texts[n]
  end
end
return answer
