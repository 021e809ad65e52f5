-- uses: base record notices places aliases enqueue
-- rarely: job resolve lines gates index end unique change bound
-- Adds a batch of jobs.
-- ARGV[2] how many, ARGV[3] their kinds, ids and frames (shared/enqueue.lua); ARGV[4], for all or none of them, JSON of the parents that are
-- not in the batch: { place, parents } each.
-- Promise: each is worked off in its order and sees those before it; an id that is known, as a job or an alias, changes nothing.
-- Answers a frame for each: what became of it and, where it is about another, that one's id.

local amount, frames, blob, ids = tonumber(ARGV[2]), {}, ARGV[3], {}
local kinds, position = readKinds(blob, 1)
for n = 1, amount do ids[n], position = struct.unpack(">Hc0", blob, position) end
readRests(ids)
if ARGV[4] and ARGV[4] ~= "" then
  local missing = rarely().missingParents(ids, cjson.decode(ARGV[4]))
  if missing then return missing end
end
reserveSeqs(amount)
local wasAdded = string.char(answers.added)
for n = 1, amount do
  local id, number, slot, runAt, delayMs, input, bound = ids[n], nil, nil, nil, nil, nil, nil
  number, slot, runAt, delayMs, input, position = struct.unpack(FRAME, blob, position)
  local kind = kinds[number + 1]
  if kind.isPlain and not isKnown(id) then
    if runAt == huge then runAt = now + delayMs end
    insertSwiftly(id, kind, slot, runAt, input)
    frames[n] = wasAdded
  else
    if kind.bound == 1 then bound, position = struct.unpack(">I4c0", blob, position) end
    frames[n] = enqueueAnswer(rarely().enqueueOne(rare.newJob(id, kind, slot, runAt, delayMs, input, bound)))
  end
end
flushDoors(kinds)
flushInputs()
flush()
publish()
return table.concat(frames)
