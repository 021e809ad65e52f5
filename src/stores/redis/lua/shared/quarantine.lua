-- Puts jobs whose record cannot be read among the dead, where questions, counts and retention find them.
-- Hash `unreadable`: id -> what was there; list `quarantined`: those that the next reap must report.

local UNREADABLE = P .. "unreadable"

-- Examines what is in a place for waiting jobs and does not belong there. One that waits is found nowhere else.
function rare.meet(member)
  hint(member)
  local id = idOf(member)
  local job = jobOf(id)
  if not job or job.isBroken or job[STATE] ~= WAITING then return end
  known[id] = salvage(id, fronts[id], rests[id])
  rare.quarantine(known[id])
end

-- A job is in line and has no record. If all records were overwritten, its place is all that is left of it.
function rare.missRecord(id)
  if hints[id] and call("HEXISTS", P .. "asides", "jobs") == 1 then rare.quarantine(salvage(id, false, false)) end
end

function rare.quarantine(job)
  local id, was, tail = job.id, job.was, job.tail
  call("HSET", UNREADABLE, id, (fronts[id] or "") .. (rests[id] or ""))
  rare.hasQuarantined = true
  if was and isTerminal(was) then return end
  if was then
    countIn(was, tail[QUEUE], tail[NAME], -1)
    live(math.floor(job[SEQ] / BLOCKSIZE), -1)
  end
  if was == ACTIVE and job[RELAYED] == 0 then add(ACTIVES, "q" .. tail[QUEUE], -1) end
  call("RPUSH", P .. "quarantined", id)
  for _, key in ipairs({ LEASES, EXPIRING, P .. "named" }) do
    place(key, id, false)
  end
  if job[RELAYED] == 1 then leaveRelay(job) end
  enter(job)
  tellChildren(job)
end
