-- uses: base record notices lines gates index end answer limits sources claim
-- Takes due jobs for one claimer.
-- ARGV[2] JSON: { claimer, sequence, leaseMs, limit, ahead, alone, names: [[name, concurrency, rate limit, rate window]],
-- queues?: [[queue, limit]], answered: the last sequence of this claimer that was answered, doubtful: whether this one was sent before }.
-- Promise: a job is held by one claimer at a time; a lower sequence than the last takes nothing, the same one repeats its answer.
-- A claim that takes nothing is not written, so that an idle node writes nothing: only the claimer's handle remembers it. One that was
-- sent before is written all the same, since the first copy may still be on its way.
-- Its work grows with the limit and with the queues and names that have something due, never with how many jobs wait.
-- Answers a head, then id, record and input of each job (shared/claim.lua).

local answer = claim(cjson.decode(ARGV[2]))
flush()
publish()
return answer
