-- uses: base
-- Queues that were configured.
-- Answers names and what configure-queue.lua keeps of each, in turn.

return call("HGETALL", P .. "queues")
