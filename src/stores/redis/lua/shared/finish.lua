-- Ends claims by their holders. They come in groups: what kind, token, how many; then, for kind 0, successes without a result, the ids;
-- for kind 1, id, outcome, delayMs (below 0 for none), result or reason, and error of each.

-- The claims in columns. `isPlain`: nothing but successes.
local function readFinishes(frames, amount)
  local list = { ids = {}, tokens = {}, kinds = {}, delays = {}, texts = {}, errors = {}, isPlain = true }
  local ids, tokens, kinds, position, n = list.ids, list.tokens, list.kinds, 1, 0
  while n < amount do
    local kind, token, many
    kind, token, many, position = struct.unpack(">BI4I4", frames, position)
    for _ = 1, many do
      n = n + 1
      tokens[n], kinds[n] = token, SUCCEED
      if kind == 0 then
        ids[n], position = struct.unpack(">Hc0", frames, position)
      else
        ids[n], kinds[n], list.delays[n], list.texts[n], list.errors[n], position = struct.unpack(">Hc0BdI4c0I4c0", frames, position)
        if kinds[n] ~= SUCCEED then list.isPlain = false end
      end
    end
  end
  readFronts(ids)
  return list
end

-- Leases that end.
local away

-- Fronts seen so far, and what a success turns each into; false if there is more to do.
local successes = {}

local function successOf(front, claimer)
  local isWhole, state, cancel, special, _, attempt, token, _, claimedAt, _, block, queue, name, holder, result, place =
    pcall(struct.unpack, FRONT, front)
  local isFast = isWhole and state == ACTIVE and special == 0 and holder == claimer and result == "" and place == #front + 1
  local after = isFast
    and {
      token = token,
      block = block,
      queue = queue,
      name = name,
      amount = 0,
      front = struct.pack(
        FRONT,
        SUCCEEDED,
        cancel,
        0,
        0,
        attempt,
        token,
        token,
        claimedAt,
        now,
        block,
        #queue,
        queue,
        #name,
        name,
        #holder,
        holder,
        0,
        ""
      ),
    }
  successes[front] = after
  return after
end

-- A success of a job without keys, children or history: only its front changes, and jobs that were claimed together share it.
local function finishFast(claimer, id, token, result)
  local front = fronts[id]
  if not front or known[id] then return false end
  local after = successes[front]
  if after == nil then after = successOf(front, claimer) end
  if not after or after.token ~= token then return false end
  local new = after.front
  if result then new = string.sub(new, 1, -5) .. struct.pack(">I4c0", #result, result) end
  fronts[id] = new
  local place, told = #writtenFronts, notices.ended
  writtenFronts[place + 1], writtenFronts[place + 2] = id, new
  away[#away + 1] = id
  succeeded[#succeeded + 1] = id
  told[#told + 1] = id
  after.amount = after.amount + 1
  return true
end

-- Counts what was finished on the fast path, once for each front.
local function countFinished()
  for _, after in pairs(successes) do
    local amount = after and after.amount or 0
    if amount > 0 then
      local queue, name = after.queue, after.name
      countIn(ACTIVE, queue, name, -amount)
      countIn(SUCCEEDED, queue, name, amount)
      add(ACTIVES, "q" .. queue, -amount)
      live(after.block, -amount)
      noteFreedIn(queue)
      after.amount = 0
    end
  end
end

-- Two bytes for each: its outcome (0 stale, 1 written, 2 repeated), and the job's state (0: unknown). `fast` is the fast path for an
-- ordinary success, and returns whether it applied; of the others, only those that are `mine` are ended.
local function finishAll(claimer, list, fast, mine)
  local ids, tokens, kinds, texts, results = list.ids, list.tokens, list.kinds, list.texts, {}
  away = listIn(gone, LEASES)
  local written = string.char(1, SUCCEEDED)
  for n = 1, #ids do
    if kinds[n] == SUCCEED and fast(claimer, ids[n], tokens[n], texts[n]) then
      results[n] = written
    else
      results[n] = string.char(rarely().finishOne(claimer, list, n, mine))
    end
  end
  countFinished()
  return table.concat(results)
end
