-- The ledger: sorted set `occurrences:<key>` of rows by fireAt, one for each; sorted set `ledger` of <key>␟<fireAt> by when it was
-- written. An occurrence comes as a frame: fireAt, until, count, skipped, reason with a mark before it, has a job.

local OCCURRENCE = ">dddBI4c0B"
local LEDGERROW = ">BddddI4c0Hc0Hc0"

local function readOccurrence(frames, position)
  local one = {}
  one.fireAt, one.untilAt, one.count, one.skipped, one.reason, one.hasJob, position = struct.unpack(OCCURRENCE, frames, position)
  return one, position
end

-- Whether its place is free, or taken by one that was skipped and may be replaced.
local function mayWrite(key, fireAt, replaceSkipped)
  local row = call("ZRANGEBYSCORE", P .. "occurrences:" .. key, fireAt, fireAt)[1]
  return not row or (replaceSkipped and string.byte(row) == 1)
end

local function writeOccurrence(key, node, one, jobId)
  local rows, fireAt = P .. "occurrences:" .. key, one.fireAt
  call("ZREMRANGEBYSCORE", rows, fireAt, fireAt)
  call(
    "ZADD",
    rows,
    fireAt,
    struct.pack(LEDGERROW, one.skipped, fireAt, one.untilAt, one.count, now, #one.reason, one.reason, #jobId, jobId, #node, node)
  )
  call("ZADD", P .. "ledger", now, key .. "\31" .. string.format("%016d", fireAt))
end
