-- uses: base record notices places aliases enqueue
-- rarely: job resolve lines gates policy index end quarantine unique change bound
-- Adds a batch of jobs.
-- ARGV[2] how many, ARGV[3] their kinds, ids and frames (shared/enqueue.lua); ARGV[4], for all or none of them, JSON of the parents that are
-- not in the batch: { place, parents } each.
-- Promise: jobs are processed in order, and each sees those before it; an id that is known, as a job or an alias, changes nothing.
-- Answers a frame for each: its outcome and, if that refers to another job, that one's id.

local amount, frames, blob, ids = tonumber(ARGV[2]), {}, ARGV[3], {}
local kinds, position = readKinds(blob, 1)
for n = 1, amount do
  ids[n], position = struct.unpack(">Hc0", blob, position)
end
readRests(ids)
if ARGV[4] and ARGV[4] ~= "" then
  local missing = rarely().missingParents(ids, cjson.decode(ARGV[4]))
  if missing then return missing end
end
reserveSeqs(amount)
local wasAdded = string.char(answers.added)
local n = 0
while n < amount do
  local number, givenAt, delayMs, many
  number, givenAt, delayMs, many, position = struct.unpack(RUN, blob, position)
  local kind, runAt = kinds[number + 1], givenAt < huge and givenAt or now + delayMs
  for _ = 1, many do
    n = n + 1
    local id, slot, input, bound = ids[n], nil, nil, nil
    slot, input, position = struct.unpack(">HI4c0", blob, position)
    if kind.isPlain and not isKnown(id) then
      insertFast(id, kind, slot, runAt, input)
      frames[n] = wasAdded
    else
      if kind.bound == 1 then
        bound, position = struct.unpack(">I4c0", blob, position)
      end
      frames[n] = enqueueAnswer(rarely().enqueueOne(rare.newJob(id, kind, slot, givenAt, delayMs, input, bound)))
    end
  end
end
flushDoors(kinds)
flushInputs()
flush()
publish()
return table.concat(frames)
