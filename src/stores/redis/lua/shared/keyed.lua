-- What a claim does for fragile jobs, keys, limits, and jobs that were claimed before.

-- With a small limit more lanes than that are looked at, so one with an urgent job is not missed.
local minLanes = 20
local maxFragile = 100

local function isBeforeJob(a, b)
  if a[PRIORITY] ~= b[PRIORITY] then return a[PRIORITY] > b[PRIORITY] end
  if a[RUNAT] ~= b[RUNAT] then return a[RUNAT] < b[RUNAT] end
  return a[SEQ] < b[SEQ]
end

-- Due jobs that must run alone, by turn.
function rare.findFragile(view)
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
    local listOf = function(priority)
      return laneListKey(priority, lane)
    end
    view.sources[#view.sources + 1] = newSource(duePriorities(P .. "lane:" .. lane), listOf, 1, lane)
  end
  found.gates[gate] = wasFull and "full" or "open"
end

-- The lanes that were ready first; and closed ones whose limit was lower than this claimer's.
function rare.findLanes(view)
  local most = math.max(ask.limit, minLanes)
  for _, group in ipairs(view.gates) do
    if queueOpensAt(group.queue) <= now then
      local gate = group.queue .. SEPARATOR .. group.name
      local lanes = call("ZRANGEBYSCORE", P .. "gates:" .. gate, "-inf", now, "LIMIT", 0, most)
      for _, lane in ipairs(lanes) do
        lookAtLane(view, lane, gate, false)
      end
    end
  end
  for _, name in ipairs(view.full) do
    local limit = ask.names[name][1]
    local below = limit and "(" .. limit or "+inf"
    local full = call("ZRANGEBYSCORE", P .. "full:" .. name, "-inf", below, "LIMIT", 0, most)
    for _, member in ipairs(full) do
      local queue, lane = splitGate(member)
      if looksInto(queue) then lookAtLane(view, lane, queue .. SEPARATOR .. name, true) end
    end
  end
end

local function take(job, isAhead)
  countClaim(job)
  leave(job)
  setReason(job, nil)
  setHolder(job, ask.claimer)
  job[STATE], job[ATTEMPT] = ACTIVE, job[ATTEMPT] + 1
  job[AHEAD] = isAhead and 1 or 0
  enter(job)
  place(LEASES, job.id, now + ask.leaseMs)
end

-- Adds a job to the answer; its rest is written by then.
local function answerWith(job)
  local n = #taken.ids + 1
  taken.ids[n], taken.rests[n] = job.id, false
  taken.stands[n] = struct.pack(">BI4I4", job[CANCEL], job[ATTEMPT], job[TOKEN])
  if job.apart then taken.apart[#taken.apart + 1] = job.id end
end

-- Takes the first fragile job that may go, alone. Returns whether there was one.
function rare.takeFragile(view)
  if ask.limit <= 0 or not ask.alone then return false end
  for n, job in ipairs(view.fragile) do
    if opensAt(job) <= now then
      table.remove(view.fragile, n)
      take(job, false)
      answerWith(job)
      flush()
      rare.flushLimits()
      return true
    end
  end
  return false
end

-- The jobs of the last claim that are still active under it, with lease left. Its claimer has claimed nothing since.
function rare.takeAgain(ids)
  for id in string.gmatch(ids, "[^\n]+") do
    local job = jobOf(id)
    if job and job[STATE] == ACTIVE and job[RELAYED] == 0 and job[CLAIMER] == ask.claimer then
      local leaseUntil = call("ZSCORE", LEASES, id)
      if leaseUntil and tonumber(leaseUntil) > now then answerWith(job) end
    end
  end
end

-- Whether a job may be claimed before its holder has room for it, and its queue has no limit.
local function mayGoAhead(job)
  local tail = tailOf(job)
  local config = queueConfig(tail[QUEUE])
  if config and (config[2] < huge or config[3] < huge) then return false end
  return mayClaimAhead(tail[DELIVERY], job[KEYED] == 1, job[CRASHES], job[AHEAD] == 1)
end

-- "take" it, "skip" it (it is gone, or expired), or "stop": it holds up those behind it.
local function judge(source, job, left)
  if not job or job[STATE] ~= WAITING or isExpired(job) then return "skip" end
  local tail = tailOf(job)
  local queue = tail[QUEUE]
  if source.lane and (not ask.names[tail[NAME]] or not looksInto(queue)) then return "stop" end
  if left and left[queue] <= 0 then return "stop" end
  if queueOpensAt(queue) > now or keysOpenAt(job) > now then return "stop" end
  return "take"
end

-- Takes the first job of a source, if it may go. `left` says how many more each queue may give. Returns the result of `judge`, or "end": it
-- may go, but not ahead, and any job after it would overtake it.
function rare.takeOne(source, left, isAhead)
  local n = source.n
  local id = source.ids[n]
  if rests[id] == nil then rests[id] = source.rests[n] end
  if fronts[id] == nil then fronts[id] = source.fronts[n] end
  hint(source.member, source.group)
  local job = jobOf(id)
  if not job then rare.missRecord(id) end
  local verdict = judge(source, job, left)
  if verdict == "take" then
    if isAhead and not mayGoAhead(job) then return "end" end
    if left then left[tailOf(job)[QUEUE]] = left[tailOf(job)[QUEUE]] - 1 end
    take(job, isAhead)
    answerWith(job)
  elseif verdict == "skip" then
    if source.lane then
      call("ZREM", source.key, source.member)
    else
      place(source.key, source.member, false)
    end
  end
  return verdict
end

local function settleGates(group)
  local first = call("ZRANGE", P .. "gates:" .. group.queue .. SEPARATOR .. group.name, 0, 0, "WITHSCORES")
  local names, entry = P .. "names:" .. group.name, GATES .. group.queue
  if first[1] then
    call("ZADD", names, first[2], entry)
  else
    call("ZREM", names, entry)
  end
end

-- The first due job of a lane, and when the next one becomes due. Expired jobs are set aside on the way.
local function headOf(lane)
  local head, laterAt, aside = nil, huge, 0
  local priorities = prioritiesIn(P .. "lane:" .. lane, call("ZRANGE", P .. "lane:" .. lane, 0, maxPriorities - 1))
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
    if first[1] then
      call("ZADD", P .. "lane:" .. lane, first[2], priority)
    else
      call("ZREM", P .. "lane:" .. lane, priority)
    end
    local later = call("ZRANGEBYSCORE", key, "(" .. now, "+inf", "WITHSCORES", "LIMIT", 0, 1)
    if later[1] then laterAt = math.min(laterAt, tonumber(later[2])) end
  end
  return head, laterAt
end

-- Sets for a gate that was looked at when looking again may find a job, now that the claim has taken its jobs.
local function timeGate(lane, gate, head, laterAt)
  local queue, name = splitGate(gate)
  if not head then
    if laterAt < huge then
      setGate(lane, gate, laterAt)
    else
      removeGate(lane, gate)
    end
    return
  end
  local tail = tailOf(head)
  local own = tail[QUEUE] == queue and tail[NAME] == name
  local at = own and keysOpenAt(head) or huge
  if at <= now then return setGate(lane, gate, now) end
  if own and isFull(head) then return closeFull(lane, gate, ask.names[name][1]) end
  -- When a job with a higher priority becomes due, or the first one expires, another job is first.
  at = math.min(at, laterAt, head[ATTEMPT] == 0 and head[EXPIREAT] or huge)
  if at < huge then
    setGate(lane, gate, at)
  else
    closeBehind(lane, gate)
  end
end

function rare.settleLanes(view)
  for lane, found in pairs(view.lanes) do
    local head, laterAt = headOf(lane)
    for gate, status in pairs(found.gates) do
      if status == "full" then leaveFull(lane, gate) end
      timeGate(lane, gate, head, laterAt)
    end
  end
  for _, group in ipairs(view.gates) do
    settleGates(group)
  end
end

-- When the next job of a fragile line becomes due; those already due may be held up by their keys.
local function laterInLine(group)
  local earliest = huge
  for _, priority in ipairs(call("ZRANGE", lineKey(FRAGILE, group.queue, group.name), 0, maxPriorities - 1)) do
    local key = listKey(FRAGILE, priority, group.queue, group.name)
    local later = call("ZRANGEBYSCORE", key, "(" .. now, "+inf", "WITHSCORES", "LIMIT", 0, 1)
    earliest = math.min(earliest, tonumber(later[2]) or huge)
  end
  return earliest
end

-- When a fragile job may be claimed.
function rare.nextFragile(view)
  local earliest = huge
  for _, job in ipairs(view.fragile) do
    earliest = math.min(earliest, opensAt(job))
  end
  for _, group in ipairs(view.lines) do
    if group.kind == FRAGILE then earliest = math.min(earliest, laterInLine(group)) end
  end
  return earliest
end

-- Whether a fragile job could be taken now.
function rare.isFragileDue(view)
  for _, job in ipairs(view.fragile) do
    if opensAt(job) <= now then return true end
  end
  return false
end
