-- uses: base record notices lines gates index end unique change enqueue
-- Adds a batch of jobs.
-- ARGV[2] how many, ARGV[3] their tails and frames (shared/enqueue.lua).
-- Promise: each is worked off in its order and sees those before it; an id that is known, as a job or an alias, changes nothing.
-- Answers a frame for each: what became of it and, where it is about another, that one's id.

local amount, frames, ids, new = tonumber(ARGV[2]), {}, {}, {}
local texts, position = readTails(ARGV[3], 1)
for n = 1, amount do
  new[n], position = readNewJob(ARGV[3], position, texts)
  ids[n] = new[n].id
end
readJobs(ids)
reserveSeqs(amount)
for n = 1, amount do frames[n] = enqueueAnswer(enqueueOne(new[n])) end
flushInputs()
flush()
publish()
return table.concat(frames)
