-- uses: base record notices lines gates index end
-- Ends claims whose lease ran out, and jobs that expired.
-- ARGV[2] how many at the most.
-- Promise: expiry is decided here, in the same step as the write. Sorted sets used: leases, expiring.
-- Answers whether there is more, then a frame for each: id, name, queue, state, reason with a mark before it.

local limit, frames = tonumber(ARGV[2]), {}

local function reaped(job)
  local tail, reason = tailOf(job), rareOf(job).reason
  reason = reason and "=" .. reason or ""
  frames[#frames + 1] = struct.pack(
    ">Hc0Hc0Hc0BI4c0", #job.id, job.id, #tail[NAME], tail[NAME], #tail[QUEUE], tail[QUEUE], job[STATE], #reason, reason
  )
end

local function overdue(key, most)
  return call("ZRANGEBYSCORE", key, "-inf", now, "LIMIT", 0, most)
end

local silent = overdue(LEASES, limit)
readJobs(silent)
for _, id in ipairs(silent) do
  local job = jobOf(id)
  if job and job[STATE] == ACTIVE then
    settleClaim(job, outcomes.crash, -1, "its lease ran out", "")
    reaped(job)
  else
    place(LEASES, id, false)
  end
end
flushSets()
while #frames < limit do
  local expired = overdue(EXPIRING, limit - #frames)
  if not expired[1] then break end
  readJobs(expired)
  for _, id in ipairs(expired) do
    local job = jobOf(id)
    if job and isExpired(job) then
      cancelIdle(job, "expired")
      reaped(job)
    elseif not job or job[STATE] > WAITING then
      place(EXPIRING, id, false)
    end
  end
  flushSets()
end
flush()
publish()
local more = overdue(LEASES, 1)[1] or overdue(EXPIRING, 1)[1]
return string.char(more and 1 or 0) .. table.concat(frames)
