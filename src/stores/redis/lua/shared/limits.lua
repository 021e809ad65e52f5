-- The limits between one claimer and the due jobs: names, queues, pauses, concurrency and rates.
--
--   windows      hash of q<queue> and k<rate key>: when its window started, how many claims it has seen, how long it is
--   windowends   sorted set of the same, by when the window is over

local activeUnder, windowOpensAt, countInWindow
do
  local activeBefore = {}

  function activeUnder(field)
    local before = activeBefore[field]
    if not before then
      before = tonumber(call("HGET", ACTIVES, field)) or 0
      activeBefore[field] = before
    end
    local since = sums[ACTIVES]
    return before + (since and since[field] or 0)
  end

  local windows, usedWindows = {}, {}

  -- The window that is open now. A window from the future means that the clock was set back.
  local function openWindow(field, perMs)
    local window = windows[field]
    if window == nil then
      local text = call("HGET", P .. "windows", field)
      window = text and apart(">ddd", text) or false
      windows[field] = window
    end
    if window and now >= window[1] and now < window[1] + perMs then return window end
  end

  function windowOpensAt(field, limit, perMs)
    if not limit or limit == huge then return now end
    local window = openWindow(field, perMs)
    if not window or window[2] < limit then return now end
    return window[1] + perMs
  end

  function countInWindow(field, limit, perMs)
    if not limit or limit == huge then return end
    local window = openWindow(field, perMs) or { now, 0, perMs }
    window[2], window[3] = window[2] + 1, perMs
    windows[field], usedWindows[field] = window, window
  end

  -- The counts have been written by now, and are read again.
  function rare.flushLimits()
    activeBefore = {}
    for field, window in pairs(usedWindows) do
      call("HSET", P .. "windows", field, struct.pack(">ddd", window[1], window[2], window[3]))
      call("ZADD", P .. "windowends", window[1] + window[3], field)
    end
  end
end

-- Now, the end of a rate window, or infinity if time alone opens nothing.
local function queueOpensAt(queue)
  local config = queueConfig(queue)
  if not config then return now end
  if config[1] == 1 or (config[2] < huge and activeUnder("q" .. queue) >= config[2]) then return huge end
  return windowOpensAt("q" .. queue, config[3], config[4])
end
rare.queueOpensAt = queueOpensAt

local function isFull(job)
  local limit, key = ask.names[tailOf(job)[NAME]][1], rareOf(job).concurrencyKey
  return key and limit and activeUnder("k" .. key) >= limit
end

local function keysOpenAt(job)
  if job[KEYED] == 0 then return now end
  if isFull(job) then return huge end
  local key, name = rareOf(job).rateKey, ask.names[tailOf(job)[NAME]]
  return key and windowOpensAt("k" .. key, name[2], name[3]) or now
end

local function opensAt(job)
  local tail = tailOf(job)
  if not ask.names[tail[NAME]] or not looksInto(tail[QUEUE]) then return huge end
  return math.max(queueOpensAt(tail[QUEUE]), keysOpenAt(job))
end

local function countClaim(job)
  local tail = tailOf(job)
  local config, name = queueConfig(tail[QUEUE]), ask.names[tail[NAME]]
  if config then countInWindow("q" .. tail[QUEUE], config[3], config[4]) end
  if job[KEYED] == 0 then return end
  local key = rareOf(job).rateKey
  if key then countInWindow("k" .. key, name[2], name[3]) end
end
