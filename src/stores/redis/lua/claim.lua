-- uses: base record notices places sources claim
-- rarely: job lines gates policy index end quarantine limits keyed
-- Takes due jobs for one claimer.
-- ARGV[2] what it asks for (shared/claim.lua).
-- Promise: a job is held by one claimer at a time; a lower sequence than the last takes nothing, the same one repeats its answer.
-- A claim that takes nothing is not written, so an idle node writes nothing: only the claimer's handle remembers it. One that was
-- sent before is always written, since the first copy may still be in flight.
-- Its work grows with the limit and with the queues and names that have due jobs, never with how many jobs wait.
-- Answers a head, then the state of each job, its id and rest, and inputs that are stored separately (shared/claim.lua).

local answer = claim(ARGV[2])
publish()
return answer
