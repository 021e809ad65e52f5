-- uses: base
-- A piece of the audit log, newest first: numbers count up by one.
-- ARGV[2] the number to continue below, or "" for the latest; ARGV[3] how many numbers to look at.
-- Answers the last number looked at (0: there is nothing below it), then number, entry and outcome in turn.

local latest = tonumber(call("GET", P .. "auditlast") or "0")
-- Numbers that something else has written could be counted down forever.
if not latest or latest >= 2 ^ 52 then latest = tonumber(call("ZREVRANGE", P .. "auditat", 0, 0)[1]) or 0 end
local first = (tonumber(ARGV[2]) or latest + 1) - 1
local last = math.max(1, first - tonumber(ARGV[3]) + 1)
local numbers = {}
for number = first, last, -1 do
  numbers[#numbers + 1] = number
end
local entries, outcomes = hashValues(P .. "audit", numbers), hashValues(P .. "auditoutcomes", numbers)
local answer = { last <= 1 and "0" or tostring(last) }
for n, number in ipairs(numbers) do
  if entries[n] then
    answer[#answer + 1] = tostring(number)
    answer[#answer + 1] = entries[n]
    answer[#answer + 1] = outcomes[n] and "=" .. outcomes[n] or ""
  end
end
return answer
