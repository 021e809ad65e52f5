-- uses: base
-- Schedules: all, or those asked for.
-- ARGV[2] JSON: the keys, or "" for all.
-- Answers keys and what shared/schedule.lua keeps of each, in turn.

if ARGV[2] == "" then return call("HGETALL", P .. "schedules") end
local keys, answer = cjson.decode(ARGV[2]), {}
local texts = hashValues(P .. "schedules", keys)
for n, key in ipairs(keys) do
  if texts[n] then
    answer[#answer + 1] = key
    answer[#answer + 1] = texts[n]
  end
end
return answer
