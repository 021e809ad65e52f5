-- Chooses due jobs for one claimer and makes them its own.

-- A block of its own: Lua has room for 200 locals in a script.
local claim
do
  -- With a small limit more lanes than that are looked at, so that one with an urgent job is not passed over.
  local minLanes = 20
  local maxFragile = 100
  -- How many expired jobs one claim puts aside; whoever asks again goes on there.
  local maxAside = 1000

  -- Whether no limit of this claim or of the queue stands before a job without keys.
  local function isFree(queue)
    if ask.queues then return false end
    local config = queueConfig(queue)
    return not config or (config[1] == 0 and config[2] == huge and config[3] == huge)
  end

  -- Everything that this claimer could run: lines and gates with something due, and lanes that may be ready.
  local function look(most)
    local view = { lines = {}, fragile = {}, gates = {}, lanes = {}, sources = {} }
    for name in pairs(ask.names) do
      for _, entry in ipairs(call("ZRANGEBYSCORE", P .. "names:" .. name, "-inf", now)) do
        local kind, queue = string.sub(entry, 1, 1), string.sub(entry, 2)
        if looksInto(queue) then
          local group = { kind = kind, queue = queue, name = name }
          if kind == GATES then
            view.gates[#view.gates + 1] = group
          else
            local key = lineKey(kind, queue, name)
            local listOf = function(priority) return listKey(kind, priority, queue, name) end
            group.source = newSource(duePriorities(key), listOf, kind == PLAIN and math.max(1, math.min(most, 1000)) or maxFragile)
            view.lines[#view.lines + 1] = group
            if kind == PLAIN then
              group.source.free, group.source.leases = isFree(queue), listIn(added, LEASES)
              view.sources[#view.sources + 1] = group.source
            end
          end
        end
      end
    end
    return view
  end

  local function isBeforeJob(a, b)
    if a[PRIORITY] ~= b[PRIORITY] then return a[PRIORITY] > b[PRIORITY] end
    if a[RUNAT] ~= b[RUNAT] then return a[RUNAT] < b[RUNAT] end
    return a[SEQ] < b[SEQ]
  end

  -- Due jobs that must run alone, by turn.
  local function findFragile(view)
    for _, group in ipairs(view.lines) do
      if group.kind == FRAGILE then
        while #view.fragile < maxFragile and advance(group.source) do
          local job = jobOf(idOf(group.source.member))
          if job and not isExpired(job) then view.fragile[#view.fragile + 1] = job end
        end
      end
    end
    table.sort(view.fragile, isBeforeJob)
  end

  local function lookAtLane(view, lane, gate, wasFull)
    local found = view.lanes[lane]
    if not found then
      found = { gates = {} }
      view.lanes[lane] = found
      local listOf = function(priority) return laneListKey(priority, lane) end
      view.sources[#view.sources + 1] = newSource(duePriorities(P .. "lane:" .. lane), listOf, 1, lane)
    end
    found.gates[gate] = wasFull and "full" or "open"
  end

  -- The lanes that were ready first; and closed ones whose limit was lower than this claimer's.
  local function findLanes(view, limit)
    for _, group in ipairs(view.gates) do
      if queueOpensAt(group.queue) <= now then
        local gate = group.queue .. SEPARATOR .. group.name
        local lanes = call("ZRANGEBYSCORE", P .. "gates:" .. gate, "-inf", now, "LIMIT", 0, math.max(limit, minLanes))
        for _, lane in ipairs(lanes) do lookAtLane(view, lane, gate, false) end
      end
    end
    for name, limits in pairs(ask.names) do
      local below = limits[1] and "(" .. limits[1] or "+inf"
      local full = call("ZRANGEBYSCORE", P .. "full:" .. name, "-inf", below, "LIMIT", 0, math.max(limit, minLanes))
      for _, member in ipairs(full) do
        local queue, lane = splitGate(member)
        if looksInto(queue) then lookAtLane(view, lane, queue .. SEPARATOR .. name, true) end
      end
    end
  end

  -- Whether a job may be claimed before its holder has room for it: `mayClaimAhead` of src/state.ts, and its queue has no limit.
  local function mayGoAhead(job)
    local tail = tailOf(job)
    local config = queueConfig(tail[QUEUE])
    if config and (config[2] < huge or config[3] < huge) then return false end
    return tail[DELIVERY] ~= ATMOSTONCE and job[KEYED] + job[CRASHES] + job[AHEAD] == 0
  end

  local function take(job, leaseMs, isAhead)
    countClaim(job)
    leave(job)
    setReason(job, nil)
    setHolder(job, ask.claimer)
    job[STATE], job[ATTEMPT] = ACTIVE, job[ATTEMPT] + 1
    job[AHEAD] = isAhead and 1 or 0
    enter(job)
    place(LEASES, job.id, now + leaseMs)
  end

  -- The front of a record that nobody has claimed yet, and what it becomes.
  local fresh = struct.pack(FRONT, WAITING, 0, 0, 0, 0, 0, 0, huge, huge, 0, "", 0, "")
  local freshLength, held, heldAhead = #fresh, nil, nil

  -- Takes a job without keys, children or a past: all that changes is the front of its record. Returns nil if it is no such job.
  local function takeSwiftly(source, id, leaseUntil, isAhead)
    local text = untouched(id)
    if not text or string.sub(text, 1, freshLength) ~= fresh then return nil end
    if isAhead then
      local tail = readTail(string.sub(text, freshLength + BACKSIZE + 1))
      if not tail or tail[DELIVERY] == ATMOSTONCE then return nil end
    end
    text = (isAhead and heldAhead or held) .. string.sub(text, freshLength + 1)
    rewrite(id, text)
    local leases, away = source.leases, source.away
    local place = #leases
    leases[place + 1], leases[place + 2] = leaseUntil, id
    away[#away + 1] = source.member
    source.taken = source.taken + 1
    return { id = id, text = text }
  end

  -- Counts what was taken swiftly, once for each line.
  local function countTaken(view)
    for _, group in ipairs(view.lines) do
      local amount = group.source.taken
      if amount > 0 then
        local tail = { [QUEUE] = group.queue, [NAME] = group.name }
        countIn(WAITING, tail, -amount)
        countIn(ACTIVE, tail, amount)
        add(ACTIVES, "q" .. group.queue, amount)
      end
    end
  end

  -- "take" it, "skip" it (it is no longer there, or expired), or "stop": it holds up those behind it.
  local function judge(source, job, left)
    if not job or job[STATE] ~= WAITING or isExpired(job) then return "skip" end
    local tail = tailOf(job)
    local queue = tail[QUEUE]
    if source.lane and (not ask.names[tail[NAME]] or not looksInto(queue)) then return "stop" end
    if left and left[queue] <= 0 then return "stop" end
    if queueOpensAt(queue) > now or keysOpenAt(job) > now then return "stop" end
    return "take"
  end

  -- Direct claims up to the limit, then ahead. Also returns whether those ahead ended at a job that only a direct claim may take.
  local function choose(view, limit, ahead, leaseMs)
    local taken, aside = {}, 0
    if limit > 0 and ask.alone then
      for n, job in ipairs(view.fragile) do
        if opensAt(job) <= now then
          table.remove(view.fragile, n)
          take(job, leaseMs)
          return { job }, false
        end
      end
    end
    local left
    if ask.queues then
      left = {}
      for queue, most in pairs(ask.queues) do left[queue] = most end
    end
    local heap, leaseUntil = newHeap(view.sources), textOf(now + leaseMs)
    held = struct.pack(FRONT, ACTIVE, 0, 0, 0, 1, 1, 0, now, huge, #ask.claimer, ask.claimer, 0, "")
    heldAhead = struct.pack(FRONT, ACTIVE, 0, 0, 1, 1, 1, 0, now, huge, #ask.claimer, ask.claimer, 0, "")
    while heap[1] and #taken < limit + ahead and aside < maxAside do
      local isAhead = #taken >= limit
      local source = heap[1]
      local id = idOf(source.member)
      local job, verdict = source.free and takeSwiftly(source, id, leaseUntil, isAhead), nil
      if not job then
        job = jobOf(id)
        verdict = judge(source, job, left)
      end
      if not verdict then
        taken[#taken + 1] = job
      elseif verdict == "take" then
        -- Whatever follows would overtake it.
        if isAhead and not mayGoAhead(job) then return taken, true end
        if left then left[tailOf(job)[QUEUE]] = left[tailOf(job)[QUEUE]] - 1 end
        take(job, leaseMs, isAhead)
        taken[#taken + 1] = job
      elseif verdict == "skip" then
        aside = aside + 1
        local key = source.listOf(source.priority)
        if source.lane then call("ZREM", key, source.member) else place(key, source.member, false) end
      end
      moveOn(heap, verdict == "stop")
    end
    return taken, false
  end

  -- Moves the lower bounds of a line to where its jobs are now.
  local function settleLine(group)
    local key, source = lineKey(group.kind, group.queue, group.name), group.source
    for turn = 1, math.min(source.turn, #source.priorities) do
      local priority = source.priorities[turn]
      local first = call("ZRANGE", source.listOf(priority), 0, 0, "WITHSCORES")
      if first[1] then call("ZADD", key, first[2], priority) else call("ZREM", key, priority) end
    end
    local first = call("ZRANGE", key, 0, 0, "WITHSCORES")
    local names, entry = P .. "names:" .. group.name, group.kind .. group.queue
    if first[1] then call("ZADD", names, first[2], entry) else call("ZREM", names, entry) end
  end

  local function settleGates(group)
    local first = call("ZRANGE", P .. "gates:" .. group.queue .. SEPARATOR .. group.name, 0, 0, "WITHSCORES")
    local names, entry = P .. "names:" .. group.name, GATES .. group.queue
    if first[1] then call("ZADD", names, first[2], entry) else call("ZREM", names, entry) end
  end

  -- The first due job of a lane, and when the next one becomes due. What has expired is put aside on the way.
  local function headOf(lane)
    local head, laterAt, aside = nil, huge, 0
    local priorities = call("ZRANGE", P .. "lane:" .. lane, 0, maxPriorities - 1)
    for n = 1, #priorities do priorities[n] = tonumber(priorities[n]) end
    table.sort(priorities, function(a, b) return a > b end)
    for _, priority in ipairs(priorities) do
      local key = laneListKey(priority, lane)
      local first = call("ZRANGE", key, 0, 0, "WITHSCORES")
      while first[1] and tonumber(first[2]) <= now and aside < maxAside do
        local job = jobOf(idOf(first[1]))
        if job and job[STATE] == WAITING and not isExpired(job) then
          head = head or job
          break
        end
        aside = aside + 1
        call("ZREM", key, first[1])
        first = call("ZRANGE", key, 0, 0, "WITHSCORES")
      end
      if first[1] then call("ZADD", P .. "lane:" .. lane, first[2], priority) else call("ZREM", P .. "lane:" .. lane, priority) end
      local later = call("ZRANGEBYSCORE", key, "(" .. now, "+inf", "WITHSCORES", "LIMIT", 0, 1)
      if later[1] then laterAt = math.min(laterAt, tonumber(later[2])) end
    end
    return head, laterAt
  end

  -- Says of a gate that was looked at when looking again may bring something, now that the claim has taken its jobs.
  local function timeGate(lane, gate, head, laterAt)
    local queue, name = splitGate(gate)
    if not head then
      if laterAt < huge then setGate(lane, gate, laterAt) else removeGate(lane, gate) end
      return
    end
    local tail = tailOf(head)
    local own = tail[QUEUE] == queue and tail[NAME] == name
    local at = own and keysOpenAt(head) or huge
    if at <= now then return setGate(lane, gate, now) end
    if own and isFull(head) then return closeFull(lane, gate, ask.names[name][1]) end
    -- A job with a higher priority that becomes due, or the end of the first one's time, changes who is first.
    at = math.min(at, laterAt, head[ATTEMPT] == 0 and head[EXPIREAT] or huge)
    if at < huge then setGate(lane, gate, at) else closeBehind(lane, gate) end
  end

  local function settleLanes(view)
    for lane, found in pairs(view.lanes) do
      local head, laterAt = headOf(lane)
      for gate, status in pairs(found.gates) do
        if status == "full" then leaveFull(lane, gate) end
        timeGate(lane, gate, head, laterAt)
      end
    end
  end

  -- When the next job of a fragile line becomes due; those that are due may be held up by their keys.
  local function laterInLine(group)
    local earliest = huge
    for _, priority in ipairs(call("ZRANGE", lineKey(FRAGILE, group.queue, group.name), 0, maxPriorities - 1)) do
      local key = listKey(FRAGILE, priority, group.queue, group.name)
      local later = call("ZRANGEBYSCORE", key, "(" .. now, "+inf", "WITHSCORES", "LIMIT", 0, 1)
      earliest = math.min(earliest, tonumber(later[2]) or huge)
    end
    return earliest
  end

  -- The earliest that a line or gate of this name may bring something. They stand by time, so the first one for later is enough.
  local function nextOf(name)
    local earliest, first = huge, 0
    while true do
      local entries = call("ZRANGE", P .. "names:" .. name, first, first + 99, "WITHSCORES")
      for n = 1, #entries, 2 do
        local kind, queue, at = string.sub(entries[n], 1, 1), string.sub(entries[n], 2), tonumber(entries[n + 1])
        if looksInto(queue) then
          if at > now then return math.min(earliest, at) end
          if kind ~= FRAGILE then earliest = math.min(earliest, queueOpensAt(queue)) end
          if earliest <= now then return now end
        end
      end
      if #entries < 200 then return earliest end
      first = first + 100
    end
  end

  -- When the same question may bring more: now, when a job becomes due, or when a rate window ends.
  local function nextAt(view, most)
    if most <= 0 then return huge end
    local earliest = huge
    for name in pairs(ask.names) do earliest = math.min(earliest, nextOf(name)) end
    if not ask.alone then return earliest end
    for _, job in ipairs(view.fragile) do earliest = math.min(earliest, opensAt(job)) end
    for _, group in ipairs(view.lines) do
      if group.kind == FRAGILE then earliest = math.min(earliest, laterInLine(group)) end
    end
    return earliest
  end

  local CLAIMERS = P .. "claimers"

  -- The jobs of the last claim that are still active under it, with lease left. Its claimer has claimed nothing since.
  local function stillHeld(ids)
    local jobs = {}
    for id in string.gmatch(ids, "[^\n]+") do
      local job = jobOf(id)
      if job and job[STATE] == ACTIVE and job[RELAYED] == 0 and job[CLAIMER] == ask.claimer then
        local leaseUntil = call("ZSCORE", LEASES, id)
        if leaseUntil and tonumber(leaseUntil) > now then jobs[#jobs + 1] = job end
      end
    end
    return jobs
  end

  -- Ids have no line breaks.
  local function remember(sequence, jobs)
    local ids = {}
    for n, job in ipairs(jobs) do ids[n] = job.id end
    call("HSET", CLAIMERS, ask.claimer, struct.pack(">d", sequence) .. table.concat(ids, "\n"))
    call("ZADD", P .. "claimersseen", now, ask.claimer)
  end

  -- Answers outcome (1: claimed, 0: stale), now, nextAt, whether a fragile job is due and whether those ahead ended at a job that may not
  -- be among them in one text, then the parts of the jobs.
  function claim(params)
    ask = { claimer = params.claimer, alone = params.alone, names = {} }
    for _, name in ipairs(params.names) do ask.names[name[1]] = { name[2] or nil, name[3] or nil, name[4] } end
    if params.queues then
      ask.queues = {}
      for _, queue in ipairs(params.queues) do ask.queues[queue[1]] = queue[2] end
    end
    local last = call("HGET", CLAIMERS, ask.claimer)
    local kept, position = -1, 1
    if last then kept, position = struct.unpack(">d", last) end
    local latest = math.max(kept, params.answered)
    if params.sequence < latest then return { struct.pack(">BddBB", 0, now, huge, 0, 0) } end
    local limit, repeated = params.limit, params.sequence == latest
    local most = limit + params.ahead
    local view = look(most)
    findFragile(view)
    local jobs, isHeldUp
    if repeated then
      jobs = kept == latest and stillHeld(string.sub(last, position)) or {}
    else
      findLanes(view, limit)
      jobs, isHeldUp = choose(view, limit, params.ahead, params.leaseMs)
      countTaken(view)
      flush()
      flushLimits()
      settleLanes(view)
      if jobs[1] or params.doubtful then remember(params.sequence, jobs) end
    end
    for _, group in ipairs(view.lines) do settleLine(group) end
    for _, group in ipairs(view.gates) do settleGates(group) end
    local fragile = 0
    for _, job in ipairs(view.fragile) do
      if opensAt(job) <= now then fragile = 1 end
    end
    return claimedParts(jobs, { struct.pack(">BddBB", 1, now, nextAt(view, most), fragile, isHeldUp and 1 or 0) })
  end
end
