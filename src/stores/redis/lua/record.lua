-- uses: base
-- Writes to the audit log. An entry whose id is known gets the new outcome.
-- ARGV[2] JSON: [[id, outcome or false, the entry as JSON]].
-- Hash `auditids`: id -> its number; hash `audit`: number -> time, then the entry as JSON; hash `auditoutcomes`: number -> outcome; sorted set
-- `auditat`: numbers by time of writing.

local latest = tonumber(call("GET", P .. "auditlast") or "0")
if not latest or latest < 0 or latest >= 2 ^ 52 or latest % 1 ~= 0 then
  -- Something else has written it. Entries that are there keep their numbers.
  call("SET", P .. "auditlast", tonumber(call("ZREVRANGE", P .. "auditat", 0, 0)[1]) or 0)
end

for _, entry in ipairs(cjson.decode(ARGV[2])) do
  local number = call("HGET", P .. "auditids", entry[1])
  if not number then
    number = call("INCR", P .. "auditlast")
    call("HSET", P .. "auditids", entry[1], number)
    call("HSET", P .. "audit", number, struct.pack(">d", now) .. entry[3])
    call("ZADD", P .. "auditat", now, number)
  end
  if entry[2] then
    call("HSET", P .. "auditoutcomes", number, entry[2])
  else
    call("HDEL", P .. "auditoutcomes", number)
  end
end
