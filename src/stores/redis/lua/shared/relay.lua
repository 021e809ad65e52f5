-- What the relay does to almost every job, without decoding its record: only the front changes. Not for jobs with keys, reasons
-- or children, jobs that may expire, or jobs that another node settled before.

local fast = { owner = "", partition = false, dueBy = 0 }
-- The slots seen so far: the key of each one's waiting jobs, and its number as a string.
local relayPlaces = {}

local function relayPlace(slot)
  local found = relayPlaces[slot]
  if not found then
    found = { key = P .. "relay:" .. slot, text = textOf(slot) }
    relayPlaces[slot] = found
  end
  return found
end

-- The fields of an ordinary job of this partition; nil for others.
local function readOurs(id)
  local rest = not known[id] and rests[id]
  if not rest or #rest < SHORTEST then return nil end
  local marks, seq, slot, relayed, _, parent, _, _, _, _, _, runAt, _, _, expireAt, size = struct.unpack(BACK, rest)
  local isHere = relayed == 1 and slot >= fast.partition[FIRSTSLOT] and slot < fast.partition[ENDSLOT]
  if not isHere or parent ~= 0 or expireAt ~= huge then return nil end
  local tail = readTail(string.sub(rest, BACKSIZE + 1, BACKSIZE + size))
  if not tail or tail[RARE] ~= "" then return nil end
  return tail, seq, slot, runAt, marks, rest
end

local function packOurs(tail, seq, state, cancel, attempt, token, settled, claimedAt, finishedAt, claimer)
  local queue, name = tail[QUEUE], tail[NAME]
  return struct.pack(
    FRONT,
    state,
    cancel,
    1,
    0,
    attempt,
    token,
    settled,
    claimedAt,
    finishedAt,
    math.floor(seq / BLOCKSIZE),
    #queue,
    queue,
    #name,
    name,
    #claimer,
    claimer,
    0,
    ""
  )
end

-- Whether it ended a named job with success.
local function settleFast(claimer, id, token, result)
  local tail, seq = readOurs(id)
  local front = fronts[id]
  if not tail or not front or result then return false end
  local isWhole, state, cancel, _, _, attempt, held, _, claimedAt, _, _, _, _, holder = pcall(struct.unpack, FRONT, front)
  if not isWhole or state ~= ACTIVE or held ~= token or holder ~= claimer then return false end
  writeFront(id, packOurs(tail, seq, SUCCEEDED, cancel, attempt, token, token, claimedAt, now, holder))
  local away, told = listIn(gone, P .. "named"), notices.ended
  away[#away + 1] = id
  succeeded[#succeeded + 1] = id
  told[#told + 1] = id
  tail.settled = (tail.settled or 0) + 1
  live(math.floor(seq / BLOCKSIZE), -1)
  return true
end

-- Names a waiting job that is due: what claimedFrames needs of it, or false.
local function nameFast(id, version)
  local tail, seq, slot, runAt, marks, rest = readOurs(id)
  if not tail or runAt > fast.dueBy or tail[VERSION] ~= version then return false end
  local owner, state, cancel, attempt, token, settled, finishedAt, holder = fast.owner, WAITING, 0, 0, 0, 0, huge, ""
  if fronts[id] then
    local isWhole, _
    isWhole, state, cancel, _, _, attempt, token, settled, _, finishedAt, _, _, _, holder = pcall(struct.unpack, FRONT, fronts[id])
    if not isWhole then return false end
  end
  if state ~= WAITING or not (settled == 0 or holder == owner) then return false end
  writeFront(id, packOurs(tail, seq, ACTIVE, cancel, attempt + 1, token + 1, settled, now, finishedAt, owner))
  local waiting = relayPlace(slot)
  local away, here = listIn(gone, waiting.key), listIn(added, P .. "named")
  local place = #here
  away[#away + 1] = struct.pack(">I6", seq) .. id
  here[place + 1], here[place + 2] = waiting.text, id
  relaySlots[slot] = true
  tail.named = (tail.named or 0) + 1
  return { id = id, whole = rest, apart = marks % 2 == APART, [CANCEL] = cancel, [ATTEMPT] = attempt + 1, [TOKEN] = token + 1 }
end

-- Counts what was settled and named on the fast path, once for each definition.
local function countFast()
  for _, tail in pairs(tails) do
    local settled, named = tail.settled or 0, tail.named or 0
    if settled > 0 then countIn(SUCCEEDED, tail[QUEUE], tail[NAME], settled) end
    if named > 0 then countIn(WAITING, tail[QUEUE], tail[NAME], -named) end
    if settled ~= named then countIn(ACTIVE, tail[QUEUE], tail[NAME], named - settled) end
    tail.settled, tail.named = nil, nil
  end
end
