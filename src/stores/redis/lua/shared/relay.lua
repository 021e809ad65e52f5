-- What the relay does to almost every job, without taking its record apart: all that changes is the front. Not for jobs with keys, reasons
-- or children, which may expire, or which another settled before.

local swiftly = { owner = "", partition = false, dueBy = 0 }
-- The slots that were met: the key of each one's waiting jobs, and its number written out.
local relayPlaces = {}

local function relayPlace(slot)
  local found = relayPlaces[slot]
  if not found then
    found = { key = P .. "relay:" .. slot, text = textOf(slot) }
    relayPlaces[slot] = found
  end
  return found
end

local function isOurs(relayed, slot)
  return relayed == 1 and slot >= swiftly.partition[FIRSTSLOT] and slot < swiftly.partition[ENDSLOT]
end

-- Whether it ended a named job with success.
local function settleSwiftly(claimer, id, token, result)
  local text = untouched(id)
  if not text or result then return false end
  local state, cancel, special, _, attempt, held, _, claimedAt, _, holder, _, back = struct.unpack(FRONT, text)
  local relayed, _, parent, _, _, _, _, slot, seq = struct.unpack(BACK, text, back)
  local tail = readTail(string.sub(text, back + BACKSIZE))
  local isPlain = tail and parent == 0 and tail[RARE] == "" and isOurs(relayed, slot)
  if not isPlain or state ~= ACTIVE or held ~= token or holder ~= claimer then return false end
  rewrite(id, struct.pack(
    FRONT, SUCCEEDED, cancel, special, 0, attempt, token, token, claimedAt, now, #holder, holder, 0, ""
  ) .. string.sub(text, back))
  local away, ended, told = listIn(gone, P .. "named"), listIn(added, endedKeys[SUCCEEDED]), notices.ended
  local place = #ended
  away[#away + 1] = id
  ended[place + 1], ended[place + 2] = nowText, id
  told[#told + 1] = id
  tail.settled = (tail.settled or 0) + 1
  add(LIVES, math.floor(seq / blockSize), -1)
  return true
end

-- Names a waiting job that is due: its id and its record, or false.
local function nameSwiftly(id, version)
  local text = untouched(id)
  if not text then return false end
  local owner = swiftly.owner
  local state, cancel, special, _, attempt, token, settled, _, finishedAt, holder, result, back = struct.unpack(FRONT, text)
  local relayed, _, _, _, _, _, _, slot, seq, _, runAt, _, _, expireAt = struct.unpack(BACK, text, back)
  local tail = readTail(string.sub(text, back + BACKSIZE))
  local isPlain = tail and expireAt == huge and tail[RARE] == "" and (settled == 0 or holder == owner) and isOurs(relayed, slot)
  if not isPlain or state ~= WAITING or runAt > swiftly.dueBy or tail[VERSION] ~= version then return false end
  text = struct.pack(
    FRONT, ACTIVE, cancel, special, 0, attempt + 1, token + 1, settled, now, finishedAt, #owner, owner, #result, result
  ) .. string.sub(text, back)
  rewrite(id, text)
  local waiting = relayPlace(slot)
  local away, here = listIn(gone, waiting.key), listIn(added, P .. "named")
  local place = #here
  away[#away + 1] = seq .. id
  here[place + 1], here[place + 2] = waiting.text, id
  relaySlots[slot] = true
  tail.named = (tail.named or 0) + 1
  return { id = id, text = text }
end

-- Counts what was settled and named swiftly, once for each definition.
local function countSwift()
  for _, tail in pairs(tails) do
    local settled, named = tail.settled or 0, tail.named or 0
    if settled > 0 then countIn(SUCCEEDED, tail, settled) end
    if named > 0 then countIn(WAITING, tail, -named) end
    if settled ~= named then countIn(ACTIVE, tail, named - settled) end
    tail.settled, tail.named = nil, nil
  end
end
