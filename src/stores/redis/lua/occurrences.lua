-- uses: base
-- Rows of a schedule's ledger, by fireAt. Sorted set used: occurrences:<key>.
-- ARGV[2] the key, ARGV[3] from (inclusive), ARGV[4] to (exclusive), ARGV[5] maximum number of rows.
-- Answers the rows as shared/ledger.lua keeps them, and their fireAt, in turn.

return call("ZRANGEBYSCORE", P .. "occurrences:" .. ARGV[2], ARGV[3], "(" .. ARGV[4], "WITHSCORES", "LIMIT", 0, ARGV[5])
