-- uses: base record notices places sources claim
-- rarely: job lines gates index end limits keyed
-- Takes due jobs for one claimer.
-- ARGV[2] what it asks for (shared/claim.lua).
-- Promise: a job is held by one claimer at a time; a lower sequence than the last takes nothing, the same one repeats its answer.
-- A claim that takes nothing is not written, so that an idle node writes nothing: only the claimer's handle remembers it. One that was
-- sent before is written all the same, since the first copy may still be on its way.
-- Its work grows with the limit and with the queues and names that have something due, never with how many jobs wait.
-- Answers a head, then where each job stands, its id and rest, and inputs that are kept apart (shared/claim.lua).

local answer = claim(ARGV[2])
publish()
return answer
