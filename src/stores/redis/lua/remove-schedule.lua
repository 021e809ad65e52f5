-- uses: base notices
-- Forgets a schedule; its ledger stays.
-- ARGV[2] its key.
-- Answers 1 if there was one.

local removed = call("HDEL", P .. "schedules", ARGV[2])
call("ZREM", P .. "due", ARGV[2])
notices.schedules = removed == 1
publish()
return removed
