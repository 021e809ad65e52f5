-- Ends claims by their holders, with any outcome and all its effects.

local verdicts = { stale = 0, written = 1, repeated = 2 }

local function notRelayed(job)
  return job[RELAYED] == 0
end

-- An outcome that the core refuses must change nothing at all, even if it follows another one of the same claim.
function rare.refusedFinish(claimer, list, mine)
  for n, kind in ipairs(list.kinds) do
    if kind ~= SUCCEED then
      local job = jobOf(list.ids[n])
      if job and (mine or notRelayed)(job) and isHeldBy(job, claimer, list.tokens[n]) and not decideFor(job, kind, "") then
        return job.id
      end
    end
  end
end

function rare.finishOne(claimer, list, n, mine)
  local token = list.tokens[n]
  local job = jobOf(list.ids[n])
  if not job then return verdicts.stale, 0 end
  if (mine or notRelayed)(job) and isHeldBy(job, claimer, token) then
    settleClaim(job, list.kinds[n], list.delays[n] or -1, list.texts[n] or "", list.errors[n] or "")
    job[SETTLED], job[AHEAD] = token, 0
    if hasRare(job) and rareOf(job).settledBy then changeRare(job).settledBy = nil end
    return verdicts.written, job[STATE]
  end
  -- The claimer still is the one that settled the last token, unless another one has claimed the job since.
  if job[SETTLED] == token and token > 0 and (rareOf(job).settledBy or job[CLAIMER]) == claimer then
    return verdicts.repeated, job[STATE]
  end
  return verdicts.stale, job[STATE]
end
