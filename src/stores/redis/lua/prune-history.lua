-- uses: base
-- Forgets old steps of the history, and the progress of nodes that have not written it for long.
-- ARGV[2] how long to remember nodes, in milliseconds; ARGV[3] maximum number of steps of each kind; ARGV[4] and ARGV[5] how long minutes and
-- hours are kept, "" forever.
-- Answers 1 if there are more.

local nodesMs, limit, more = tonumber(ARGV[2]), tonumber(ARGV[3]), 0

local writers = call("HGETALL", P .. "historywriters")
for n = 1, #writers, 2 do
  local seen = apart(">dd", writers[n + 1])
  if not seen or seen[2] + nodesMs <= now then call("HDEL", P .. "historywriters", writers[n]) end
end

local function prune(series, keptMs)
  local steps = P .. "historyat:" .. series
  local old = call("ZRANGEBYSCORE", steps, "-inf", now - keptMs, "LIMIT", 0, limit + 1)
  if table.remove(old, limit + 1) then more = 1 end
  for _, at in ipairs(old) do
    call("UNLINK", P .. "history:" .. series .. ":" .. at)
  end
  callMany("ZREM", steps, old, 1)
end

for index, step in ipairs({ "minute", "hour" }) do
  local keptMs = tonumber(ARGV[index + 3])
  for _, level in ipairs(keptMs and { "job", "queue", "all" } or {}) do
    prune(level .. "-" .. step, keptMs)
  end
end
return more
