-- uses: base
-- Forgets old entries of the audit log.
-- ARGV[2] how long they are kept in milliseconds, ARGV[3] maximum number of entries.
-- Answers 1 if there are more.

local limit = tonumber(ARGV[3])
local old = call("ZRANGEBYSCORE", P .. "auditat", "-inf", now - tonumber(ARGV[2]), "LIMIT", 0, limit + 1)
local more = table.remove(old, limit + 1) ~= nil
local ids = {}
for _, entry in ipairs(hashValues(P .. "audit", old)) do
  local isJson, value = pcall(cjson.decode, entry and string.sub(entry, 9) or "")
  if isJson and type(value) == "table" and value.id then ids[#ids + 1] = value.id end
end
callMany("HDEL", P .. "auditids", ids, 1)
callMany("HDEL", P .. "audit", old, 1)
callMany("HDEL", P .. "auditoutcomes", old, 1)
callMany("ZREM", P .. "auditat", old, 1)
return more and 1 or 0
