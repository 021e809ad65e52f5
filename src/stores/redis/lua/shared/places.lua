-- Where jobs are found by fields that may change, for plain jobs; lines.lua, gates.lua and index.lua have the rest.
--
--   list:<kind>:<priority>:<queue>␟<name>   sorted set of waiting jobs with one priority, by runAt, then seq
--   line:<kind>:<queue>␟<name>              sorted set of its priorities, by the earliest runAt in each list
--   names:<name>                            sorted set of <kind><queue>, by the earliest runAt (or gate) behind it
--   leases       sorted set of held jobs, by when the lease ends (written by the script that grants it)
--   ended:<state>  sorted set of terminal jobs, by finishedAt: ids, or bundles of those that succeeded together, a line for each. A job that
--                was forgotten, or has ended again, may still be in a bundle
--   counts       hash of <state>␟<queue>␟<name>: how many
--   active       hash of q<queue> and k<concurrency key>: how many held jobs
--   block:<n>    list of the ids of jobs that are consecutive in enqueue order; blocks: those with any, live: those with any not
--                terminal, lives: how many of these each has
--
-- Lines and names are lower bounds: only claims move them forward, since they look there anyway. So neither a backlog for later,
-- nor one of other names, costs a claim anything.

local PLAIN, FRAGILE, GATES, FULL = "p", "f", "g", "u"
local SEPARATOR = "\31"
local LEASES, ACTIVES, COUNTS, LIVES = P .. "leases", P .. "active", P .. "counts", P .. "lives"
local ENDED = P .. "ended:"

-- Jobs that succeeded in this script. Pruning a part of a bundle reads all of it, so none is long.
local succeeded, maxBundled = {}, 1000

-- Jobs with the same score are in the order of their members: seq comes first, its highest byte before the others.
local function idOf(member)
  return string.sub(member, 7)
end

local function seqIn(member)
  return #member >= 6 and struct.unpack(">I6", member) or 0
end

local function lineKey(kind, queue, name)
  return P .. "line:" .. kind .. ":" .. queue .. SEPARATOR .. name
end

local function listKey(kind, priority, queue, name)
  return P .. "list:" .. kind .. ":" .. priority .. ":" .. queue .. SEPARATOR .. name
end

-- Lowest runAt added in each place, so a batch writes it once.
local lowered = {}

local function lower(key, member, score)
  local set = listIn(lowered, key)
  if not set[member] or score < set[member] then set[member] = score end
end

-- Queues are few and read often: false, or { paused, concurrency, rate limit, rate window }; huge means no limit.
local queueConfigs
local function queueConfig(queue)
  if not queueConfigs then queueConfigs = { none = call("EXISTS", P .. "queues") == 0, read = {} } end
  if queueConfigs.none then return false end
  local config = queueConfigs.read[queue]
  if config == nil then
    local text = call("HGET", P .. "queues", queue)
    -- What cannot be read may have said that it is paused.
    config = text and (apart(">Bddd", text) or { 1, huge, huge, huge })
    queueConfigs.read[queue] = config
  end
  return config
end

local function countIn(state, queue, name, by)
  add(COUNTS, state .. SEPARATOR .. queue .. SEPARATOR .. name, by)
end

-- A held job of the queue ended: there may be room for others.
local function noteFreedIn(queue)
  local config = queueConfig(queue)
  if config and config[2] < huge then notices.queues[queue] = true end
end

-- New jobs of each block, in enqueue order; and how many more jobs of each block are not terminal.
local blocks, lives = {}, {}

local function live(block, by)
  lives[block] = (lives[block] or 0) + by
end

local function flushBlocks()
  for number, ids in pairs(blocks) do
    if call("RPUSH", P .. "block:" .. number, unpack(ids)) == #ids then call("ZADD", P .. "blocks", number, number) end
    live(number, #ids)
  end
  for number, by in pairs(lives) do
    if by ~= 0 then
      local left = call("HINCRBY", LIVES, number, by)
      if left <= 0 then
        call("HDEL", LIVES, number)
        call("ZREM", P .. "live", number)
      elseif left == by then
        call("ZADD", P .. "live", number, number)
      end
    end
  end
  blocks, lives = {}, {}
end

-- Writes everything that the script has collected. It may be called in the middle, too.
local function flush()
  flushJobs()
  flushSets()
  for key, set in pairs(lowered) do
    for member, score in pairs(set) do
      call("ZADD", key, "LT", score, member)
    end
  end
  lowered = {}
  for first = 1, #succeeded, maxBundled do
    local last = math.min(first + maxBundled - 1, #succeeded)
    call("ZADD", ENDED .. "succeeded", nowText, table.concat(succeeded, "\n", first, last))
  end
  succeeded = {}
  if rare.flushPlaces then rare.flushPlaces() end
  flushBlocks()
  flushSums()
end
