-- What every script begins with: its keys, its time, and writes that are collected and made once at the end.
-- KEYS[1] is the slot's meta hash; every other key has the same hash tag and so the same slot in a Cluster.
-- ARGV[1] is the time to use in milliseconds, or "" for the server's own clock.

-- Redis 6.2 may be set to replicate scripts instead of their writes; with a clock inside that would go wrong.
if redis.replicate_commands then redis.replicate_commands() end

local huge = math.huge
local P = string.sub(KEYS[1], 1, -5)

local now = tonumber(ARGV[1])
if not now then
  local time = redis.call("TIME")
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Makes room for a command that failed because something else has written to its key: a key of another type is set aside under another
-- name, a count that is no number starts again. Any other error is the server's (no memory, a replica), and must stop the script before
-- it has written anything: not even here. Hash `asides`: what was found, and when; `health` shows it.
local function makeRoom(err, key, field)
  local name = string.sub(key, #P + 1)
  if string.find(err, "WRONGTYPE", 1, true) then
    redis.call("RENAME", key, P .. "aside:" .. name)
  elseif string.find(err, "not an integer", 1, true) or string.find(err, "overflow", 1, true) then
    redis.call("HDEL", key, field)
  else
    return
  end
  redis.call("HSET", P .. "asides", name, string.format("%.17g", now))
end

-- A script that stops in the middle leaves half of its writes behind, and would do so again at each call.
local function call(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if type(answer) ~= "table" or not answer.err then return answer end
  makeRoom(answer.err, key, (...))
  return redis.call(command, key, ...)
end

-- What was packed, as a list; nil if it is cut short, has something that is not a number, or is no text at all.
local function apart(format, text)
  local parts = { pcall(struct.unpack, format, text) }
  if not table.remove(parts, 1) then return nil end
  for n = 1, #parts do
    if parts[n] ~= parts[n] then return nil end
  end
  return parts
end

-- Lua creates every function again at each call, which would cost more than everything else in a small script. So what only few jobs
-- need is created at its first use: the files that a script names as rare put here the functions that the others call.
local rare, makeRare = {}, nil

local function rarely()
  if makeRare then
    local make = makeRare
    makeRare = nil
    make()
  end
  return rare
end

-- A number passed to Redis is formatted again each time, which costs more than everything else about it.
local function textOf(number)
  return string.format("%.17g", number)
end

local nowText = textOf(now)

-- Lua's own stack bounds how many arguments one call may have.
local maxArguments = 4000

-- Calls with a list of arguments of any length, in as few calls as possible; each group of `width` stays together.
local function callMany(command, key, list, width)
  local most = maxArguments - maxArguments % width
  for first = 1, #list, most do
    call(command, key, unpack(list, first, math.min(first + most - 1, #list)))
  end
end

-- Values of hash fields, in their order; false if there is none.
local function hashValues(key, fields)
  if #fields <= maxArguments then return #fields == 0 and {} or call("HMGET", key, unpack(fields)) end
  local values = {}
  for first = 1, #fields, maxArguments do
    local part = call("HMGET", key, unpack(fields, first, math.min(first + maxArguments - 1, #fields)))
    for n = 1, #part do
      values[first + n - 1] = part[n]
    end
  end
  return values
end

local function listIn(lists, key)
  local list = lists[key]
  if not list then
    list = {}
    lists[key] = list
  end
  return list
end

-- Sorted sets: the final value of each member, a score or false for gone. Written by flushSets.
local sets = {}

local function place(key, member, score)
  listIn(sets, key)[member] = score
end

-- Members that are certain to be added, or gone, for good: score and member in turn, or members. Cheaper than `place`, and written first.
local added, gone = {}, {}

-- What was added or gone for good stays collected: callers that add to such a list may keep a reference to it.
local function flushPlaced()
  for key, set in pairs(sets) do
    local here, away = {}, {}
    for member, score in pairs(set) do
      if score then
        here[#here + 1] = score
        here[#here + 1] = member
      else
        away[#away + 1] = member
      end
    end
    callMany("ZREM", key, away, 1)
    callMany("ZADD", key, here, 2)
  end
  sets = {}
end

local function flushSets()
  for key, list in pairs(gone) do
    callMany("ZREM", key, list, 1)
  end
  for key, list in pairs(added) do
    callMany("ZADD", key, list, 2)
  end
  added, gone = {}, {}
  flushPlaced()
end

-- Counts in hashes: what to add to each field. A field that reaches zero is removed.
local sums = {}

local function add(key, field, by)
  local sum = listIn(sums, key)
  sum[field] = (sum[field] or 0) + by
end

local function flushSums()
  for key, sum in pairs(sums) do
    for field, by in pairs(sum) do
      if by ~= 0 and call("HINCRBY", key, field, by) == 0 then call("HDEL", key, field) end
    end
  end
  sums = {}
end
