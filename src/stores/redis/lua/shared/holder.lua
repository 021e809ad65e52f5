-- Every write about a claim is compare-and-set on its id, its token and its claimer.

local function isHeldBy(job, claimer, token)
  return job[STATE] == ACTIVE and job[TOKEN] == token and job[CLAIMER] == claimer
end
