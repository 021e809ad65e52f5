-- uses: base record aliases job resolve
-- The trail of a job, by its id or an alias.
-- ARGV[2] the id.
-- Answers its lines as they are kept (shared/index.lua), the oldest first.

local job = resolve(ARGV[2])
return job and call("LRANGE", P .. "trail:" .. job.id, 0, -1) or {}
