-- uses: base
-- Keeps what a node tells of itself.
-- ARGV[2] its id, ARGV[3] JSON for src/stores/redis/queues.ts to read.
-- Hash `nodes`: id -> seenAt, startedAt, then the JSON.

local old = call("HGET", P .. "nodes", ARGV[2])
local startedAt = old and select(2, struct.unpack(">dd", old)) or now
call("HSET", P .. "nodes", ARGV[2], struct.pack(">dd", now, startedAt) .. ARGV[3])
