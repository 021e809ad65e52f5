-- uses: base record notices places job lines gates policy index end quarantine
-- Ends claims whose lease ran out, and jobs that expired; reports jobs that were found unreadable.
-- ARGV[2] maximum number of jobs, ARGV[3] by when leases must have run out, empty: by now.
-- Promise: expiry is decided here, in the same step as the write. Sorted sets used: leases, expiring.
-- Answers whether there is more by now, the store's time, then a frame for each: id, name, queue, state, reason with a mark before it.

local limit, frames = tonumber(ARGV[2]), {}
local silentBy = math.min(now, tonumber(ARGV[3]) or now)

local function reaped(job)
  local tail, reason = tailOf(job), rareOf(job).reason
  reason = reason and "=" .. reason or ""
  frames[#frames + 1] =
    struct.pack(">Hc0Hc0Hc0BI4c0", #job.id, job.id, #tail[NAME], tail[NAME], #tail[QUEUE], tail[QUEUE], job[STATE], #reason, reason)
end

local function isOverdue(key)
  return call("ZRANGEBYSCORE", key, "-inf", now, "LIMIT", 0, 1)[1]
end

-- Those whose time is up, by that time and then in enqueue order.
local function overdue(key, most, by)
  local found, times, jobs = call("ZRANGEBYSCORE", key, "-inf", by, "WITHSCORES", "LIMIT", 0, most), {}, {}
  local ids = {}
  for n = 1, #found, 2 do
    ids[#ids + 1] = found[n]
    times[found[n]] = tonumber(found[n + 1])
  end
  readJobs(ids)
  for _, id in ipairs(ids) do
    local job = jobOf(id)
    if job then
      jobs[#jobs + 1] = job
    else
      place(key, id, false)
    end
  end
  table.sort(jobs, function(a, b)
    if times[a.id] ~= times[b.id] then return times[a.id] < times[b.id] end
    return a[SEQ] < b[SEQ]
  end)
  return jobs
end

for _, job in ipairs(overdue(LEASES, limit, silentBy)) do
  if job[STATE] == ACTIVE then
    -- Where it was claimed ahead, the mark stays for its next claim.
    local kind, reason = silenceOf(job[AHEAD] == 1)
    settleClaim(job, kind, -1, reason or "", "")
    reaped(job)
  else
    place(LEASES, job.id, false)
  end
end
flushSets()
while #frames < limit do
  local expired = overdue(EXPIRING, limit - #frames, now)
  if not expired[1] then break end
  for _, job in ipairs(expired) do
    if isExpired(job) then
      cancelIdle(job, expiredReason)
      reaped(job)
    else
      place(EXPIRING, job.id, false)
    end
  end
  flushSets()
end
local quarantined = P .. "quarantined"
local untold = limit > #frames and call("LRANGE", quarantined, 0, limit - #frames - 1) or {}
for _, id in ipairs(untold) do
  local job = jobOf(id)
  if job then reaped(job) end
end
if untold[1] then call("LTRIM", quarantined, #untold, -1) end
flush()
publish()
local more = isOverdue(LEASES) or isOverdue(EXPIRING)
return string.char(more and 1 or 0) .. struct.pack(">Hc0", #nowText, nowText) .. table.concat(frames)
