-- uses: base record job holder
-- Renews leases. A renewed claim counts as started.
-- ARGV[2] the claimer, ARGV[3] leaseMs, ARGV[4] how many, ARGV[5] a frame for each: id and token.
-- Promise: a lease is renewed only while the claim belongs to the claimer; a lease that ran out but was not reaped still counts as its own.
-- Answers a byte for each: 0 stale, 1 extended, 2 extended and asked to stop.

local position, ids, tokens, answers, leases = 1, {}, {}, {}, {}
for n = 1, tonumber(ARGV[4]) do
  ids[n], tokens[n], position = struct.unpack(">Hc0I4", ARGV[5], position)
end
readJobs(ids)
for n, id in ipairs(ids) do
  local job = jobOf(id)
  if job and job[RELAYED] == 0 and isHeldBy(job, ARGV[2], tokens[n]) then
    leases[#leases + 1] = now + ARGV[3]
    leases[#leases + 1] = id
    if job[AHEAD] == 1 then
      job[AHEAD] = 0
      changed[id] = job
    end
    answers[n] = string.char(1 + job[CANCEL])
  else
    answers[n] = string.char(0)
  end
end
callMany("ZADD", P .. "leases", leases, 2)
flushJobs()
return table.concat(answers)
