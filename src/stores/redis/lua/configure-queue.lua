-- uses: base notices
-- Sets the given fields of a queue and keeps the rest.
-- ARGV[2] the queue, ARGV[3] JSON: { paused?, concurrency?, rate?: [limit, perMs] }; false removes a limit.
-- Hash `queues`: queue -> paused, concurrency, rate limit, rate window; infinite if there is no limit.
-- Answers the configuration as it is now.

local queue, change = ARGV[2], cjson.decode(ARGV[3])
local text = call("HGET", P .. "queues", queue)
local config = text and (apart(">Bddd", text) or { 1, huge, huge, huge }) or { 0, huge, huge, huge }
if change.paused ~= nil then config[1] = change.paused and 1 or 0 end
if change.concurrency ~= nil then config[2] = change.concurrency or huge end
if change.rate ~= nil then
  config[3], config[4] = huge, huge
  if change.rate then
    config[3], config[4] = change.rate[1], change.rate[2]
  end
end
text = struct.pack(">Bddd", config[1], config[2], config[3], config[4])
call("HSET", P .. "queues", queue, text)
notices.configuration = true
notices.queues[queue] = true
publish()
return text
