-- Chooses due jobs for one claimer and gives them to it. The code for keys and fragile jobs is in keyed.lua.

-- How many expired jobs one claim sets aside; the next claim continues there.
local maxAside = 1000

-- claimer, leaseMs, limit, ahead, alone; names: name -> { concurrency?, rate limit?, rate window }; queues: queue -> at most how many, or
-- nil for every queue; answered: the last sequence of this claimer that was answered; doubtful: whether this one was sent before.
local ask

local function readAsk(text)
  local one, alone, doubtful, queues, names, position = { names = {} }, nil, nil, nil, nil, nil
  one.claimer, one.sequence, one.answered, one.leaseMs, one.limit, one.ahead, alone, doubtful, queues, names, position =
    struct.unpack(">Hc0dddddBBi4I4", text)
  one.alone, one.doubtful = alone == 1, doubtful == 1
  if queues >= 0 then one.queues = {} end
  for _ = 1, queues do
    local queue, most
    queue, most, position = struct.unpack(">Hc0d", text, position)
    one.queues[queue] = most
  end
  for _ = 1, names do
    local name, concurrency, limit, perMs
    name, concurrency, limit, perMs, position = struct.unpack(">Hc0ddd", text, position)
    one.names[name] = { concurrency < huge and concurrency, limit < huge and limit, perMs }
  end
  return one
end

-- Whether the claimer asks for jobs of this queue, and it is not paused.
local function looksInto(queue)
  if ask.queues and (ask.queues[queue] or 0) <= 0 then return false end
  local config = queueConfig(queue)
  return not (config and config[1] == 1)
end

-- Whether no limit of this claim or of the queue applies to a job without keys.
local function isFree(queue)
  if ask.queues then return false end
  local config = queueConfig(queue)
  return not config or (config[1] == 0 and config[2] == huge and config[3] == huge)
end

-- Everything that this claimer could run: lines and gates with due jobs, and whether lanes are closed because their key is in use.
local function look(most)
  local view = { lines = {}, gates = {}, lanes = {}, sources = {}, fragile = {}, hasFragile = false, full = {} }
  for name in pairs(ask.names) do
    for _, entry in ipairs(call("ZRANGEBYSCORE", P .. "names:" .. name, "-inf", nowText)) do
      local kind, queue = string.sub(entry, 1, 1), string.sub(entry, 2)
      if kind ~= PLAIN and kind ~= FRAGILE and kind ~= GATES and kind ~= FULL then
        -- Something else has written it. It would be due forever.
        call("ZREM", P .. "names:" .. name, entry)
      elseif kind == FULL then
        view.full[#view.full + 1] = name
      elseif looksInto(queue) then
        local group = { kind = kind, queue = queue, name = name }
        if kind == GATES then
          view.gates[#view.gates + 1] = group
        else
          local listOf = function(priority)
            return listKey(kind, priority, queue, name)
          end
          -- One more than wanted shows whether there are more.
          local chunk = kind == PLAIN and most + 1 or 100
          group.source = newSource(duePriorities(lineKey(kind, queue, name)), listOf, chunk)
          view.lines[#view.lines + 1] = group
          if kind == PLAIN then
            group.source.free, group.source.group = isFree(queue), group
            view.sources[#view.sources + 1] = group.source
          else
            view.hasFragile = true
          end
        end
      end
    end
  end
  return view
end

-- The front that fresh jobs of a line and a block get.
local function heldFront(group, block, isAhead)
  local queue, name, claimer = group.queue, group.name, ask.claimer
  return struct.pack(
    FRONT,
    ACTIVE,
    0,
    0,
    isAhead and 1 or 0,
    1,
    1,
    0,
    now,
    huge,
    struct.unpack(">I6", "\0" .. block),
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

-- What a claim has taken: ids, rests, and the state of each job that was not fresh: whether its cancel is requested, attempt and token.
local taken = { ids = {}, rests = {}, stands = {}, apart = {} }
-- How many were taken from the front of each list: those are removed by rank, not by name.
local cuts = {}
local FRESHLY = struct.pack(">BI4I4", 0, 1, 1)

-- Takes fresh jobs that a source has read, from its position up to `last`. All that changes is that they get a front.
-- Returns how many.
local function takeRead(source, last, isAhead, leaseUntil)
  local ids, rests, members, width, takenIds = source.ids, source.rests, source.buffer, source.width, taken.ids
  local leases, lastBlock, front = listIn(added, LEASES), nil, nil
  local n, place, put, lease = source.n, #takenIds, #writtenFronts, #leases
  while n <= last do
    local id, rest = ids[n], rests[n]
    if source.fronts[n] or known[id] or not rest or #rest < SHORTEST then break end
    local mark = string.byte(rest)
    if mark > 0 then
      if isAhead and mark >= ONCE then break end
      if mark % 2 == APART then taken.apart[#taken.apart + 1] = id end
    end
    local block = string.sub(members[n * width - width + 1], 1, 5)
    if block ~= lastBlock then
      lastBlock, front = block, heldFront(source.group, block, isAhead)
    end
    place = place + 1
    takenIds[place], taken.rests[place] = id, rest
    writtenFronts[put + 1], writtenFronts[put + 2] = id, front
    leases[lease + 1], leases[lease + 2] = leaseUntil, id
    n, put, lease = n + 1, put + 2, lease + 2
  end
  return n - source.n
end

-- Takes jobs out of their list: by rank if they are its first, else by name.
local function cutOut(source, count)
  local key, first = source.key, source.n
  local cut = cuts[key] or 0
  if source.skip - #source.ids + first - 1 == cut then
    cuts[key] = cut + count
    return
  end
  local away = listIn(gone, key)
  for n = first, first + count - 1 do
    away[#away + 1] = source.buffer[n * source.width - source.width + 1]
  end
end

-- Takes consecutive fresh jobs of a line, up to `most`: as long as each comes before the first of `rival`, another source. Returns how
-- many; the source is at the first that was not taken, or `isOver`.
local function takeFresh(source, rival, most, isAhead, leaseUntil)
  local count = 0
  while count < most do
    local last = rival and source.n or math.min(#source.ids, source.n + most - count - 1)
    local read = takeRead(source, last, isAhead, leaseUntil)
    if read == 0 then break end
    cutOut(source, read)
    count, source.n = count + read, source.n + read - 1
    if not advance(source) or (rival and isBefore(rival, source)) then break end
  end
  source.taken = source.taken + count
  return count
end

-- Counts what was taken on the fast path, once for each line.
local function countTaken(view)
  for _, group in ipairs(view.lines) do
    local amount = group.source.taken
    if amount > 0 then
      countIn(WAITING, group.queue, group.name, -amount)
      countIn(ACTIVE, group.queue, group.name, amount)
      add(ACTIVES, "q" .. group.queue, amount)
    end
  end
end

-- Direct claims up to the limit, then ahead. Also returns whether those ahead ended at a job that only a direct claim may take, and whether
-- a job is left that could be taken at once.
local function choose(view)
  local limit, most, aside, left = ask.limit, ask.limit + ask.ahead, 0, nil
  if most <= 0 then return false, false end
  if ask.queues then
    left = {}
    for queue, amount in pairs(ask.queues) do
      left[queue] = amount
    end
  end
  local heap, leaseUntil, verdict = newHeap(view.sources), textOf(now + ask.leaseMs), nil
  while heap[1] and #taken.ids < most and aside < maxAside do
    local source, isAhead = heap[1], #taken.ids >= limit
    local count = 0
    if source.free then
      local rival = heap[2]
      if heap[3] and isBefore(heap[3], rival) then rival = heap[3] end
      count = takeFresh(source, rival, (isAhead and most or limit) - #taken.ids, isAhead, leaseUntil)
    end
    verdict = count == 0 and rarely().takeOne(source, left, isAhead)
    if verdict == "end" then break end
    if verdict == "skip" then aside = aside + 1 end
    if verdict then
      moveOn(heap, verdict == "stop")
    elseif source.isOver then
      heap[1] = heap[#heap]
      heap[#heap] = nil
    end
    if heap[2] then sink(heap, 1) end
  end
  for key, cut in pairs(cuts) do
    call("ZREMRANGEBYRANK", key, 0, cut - 1)
  end
  return verdict == "end", heap[1] ~= nil and heap[1].free
end

-- Moves the lower bounds of a line to where its jobs are now. Jobs still being looked at are due.
local function settleLine(group)
  local source = group.source
  local last = source.isOver and #source.priorities or source.turn - 1
  local key = last > 0 and lineKey(group.kind, group.queue, group.name)
  for turn = 1, last do
    local priority = source.priorities[turn]
    local first = call("ZRANGE", source.listOf(priority), 0, 0, "WITHSCORES")
    if first[1] then
      call("ZADD", key, first[2], priority)
    else
      call("ZREM", key, priority)
    end
  end
  if not source.isOver then return end
  local first = call("ZRANGE", key or lineKey(group.kind, group.queue, group.name), 0, 0, "WITHSCORES")
  local names, entry = P .. "names:" .. group.name, group.kind .. group.queue
  if first[1] then
    call("ZADD", names, first[2], entry)
  else
    call("ZREM", names, entry)
  end
end

-- The earliest time at which a line or gate of this name may have a job. They are in order of time, so the first later one is enough.
local function nextOf(name)
  local earliest, first = huge, 0
  while true do
    local entries = call("ZRANGE", P .. "names:" .. name, first, first + 99, "WITHSCORES")
    for n = 1, #entries, 2 do
      local kind, queue, at = string.sub(entries[n], 1, 1), string.sub(entries[n], 2), tonumber(entries[n + 1])
      if kind ~= FULL and looksInto(queue) then
        if at > now then return math.min(earliest, at) end
        if kind ~= FRAGILE then earliest = math.min(earliest, queueConfig(queue) and rarely().queueOpensAt(queue) or now) end
        if earliest <= now then return now end
      end
    end
    if #entries < 200 then return earliest end
    first = first + 100
  end
end

-- When the same claim may find more: now, when a job becomes due, or when a rate window ends.
local function nextAt(view)
  if ask.limit + ask.ahead <= 0 then return huge end
  local earliest = huge
  for name in pairs(ask.names) do
    earliest = math.min(earliest, nextOf(name))
  end
  if ask.alone and view.hasFragile then earliest = math.min(earliest, rarely().nextFragile(view)) end
  return earliest
end

local CLAIMERS = P .. "claimers"
-- How old the record of when a claimer was last seen may be. It is forgotten after weeks.
local seenMs = 60000

-- Ids have no line breaks.
local function remember(seenAt)
  if seenAt > now or seenAt <= now - seenMs then
    call("ZADD", P .. "claimersseen", nowText, ask.claimer)
    seenAt = now
  end
  call("HSET", CLAIMERS, ask.claimer, struct.pack(">dd", ask.sequence, seenAt) .. table.concat(taken.ids, "\n"))
end

-- One string: reading a list of them would cost more than everything else about a job. The state of each job includes the lengths of its id
-- and rest, which most jobs share.
local function claimAnswer(outcome, at, fragile, isHeldUp)
  local ids, rests, stands, amount = taken.ids, taken.rests, taken.stands, #taken.ids
  local parts, shapes = { struct.pack(">BddBBI4", outcome, now, at, fragile and 1 or 0, isHeldUp and 1 or 0, amount) }, {}
  for n = 1, amount do
    local id, rest, stand = ids[n], rests[n], stands[n]
    local shape = #rest * 65536 + #id
    local text = not stand and shapes[shape]
    if not text then
      text = (stand or FRESHLY) .. struct.pack(">HI4", #id, #rest)
      if not stand then shapes[shape] = text end
    end
    parts[n + 1], parts[amount + n * 2], parts[amount + n * 2 + 1] = text, id, rest
  end
  for _, input in ipairs(hashValues(INPUTS, taken.apart)) do
    input = input or "null"
    parts[#parts + 1] = struct.pack(">I4c0", #input, input)
  end
  return table.concat(parts)
end

-- Answers outcome (1: claimed, 0: stale), now, nextAt, whether a fragile job is due, whether those ahead ended at a job that may not be
-- among them, and how many; then the state of each job; then id and rest of each; then the inputs stored separately, in the same order.
local function claim(text)
  ask = readAsk(text)
  local last = call("HGET", CLAIMERS, ask.claimer)
  local kept, seenAt, position = -1, -1, 1
  local seen = last and apart(">dd", last)
  if seen then
    kept, seenAt, position = seen[1], seen[2], seen[3]
  end
  local latest = math.max(kept, ask.answered)
  if ask.sequence < latest then return claimAnswer(0, huge) end
  local view, isHeldUp, isMore = look(ask.limit + ask.ahead), false, false
  if view.hasFragile then rarely().findFragile(view) end
  if ask.sequence == latest then
    if kept == latest then rarely().takeAgain(string.sub(last, position)) end
  elseif not (view.hasFragile and rarely().takeFragile(view)) then
    local hasLanes = view.gates[1] or view.full[1]
    if hasLanes then rarely().findLanes(view) end
    isHeldUp, isMore = choose(view)
    countTaken(view)
    flush()
    if rare.flushLimits then rare.flushLimits() end
    if hasLanes then rarely().settleLanes(view) end
  end
  if ask.sequence > latest and (taken.ids[1] or ask.doubtful) then remember(seenAt) end
  for _, group in ipairs(view.lines) do
    settleLine(group)
  end
  local fragile = view.hasFragile and rarely().isFragileDue(view)
  local at = isMore and now or nextAt(view)
  if rare.hasQuarantined then flush() end
  for n, id in ipairs(taken.ids) do
    taken.rests[n] = taken.rests[n] or rests[id]
  end
  return claimAnswer(1, at, fragile, isHeldUp)
end
