-- uses: base
-- Keeps what a node reports about itself.
-- ARGV[2] its id, ARGV[3] JSON for src/stores/redis/queues.ts to read.
-- Hash `nodes`: id -> seenAt, startedAt, then the JSON.

local old = call("HGET", P .. "nodes", ARGV[2])
local parts = old and apart(">dd", old)
local startedAt = parts and parts[2] or now
call("HSET", P .. "nodes", ARGV[2], struct.pack(">dd", now, startedAt) .. ARGV[3])
