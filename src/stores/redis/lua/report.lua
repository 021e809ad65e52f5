-- uses: base record notices places job lines gates policy index end quarantine holder
-- Keeps progress and log lines of held jobs.
-- ARGV[2] the claimer, ARGV[3] JSON: [{ id, token, progress?, lines }].
-- Promise: reports of stale claims are dropped.

for _, report in ipairs(cjson.decode(ARGV[3])) do
  local job = jobOf(report.id)
  if job and job[RELAYED] == 0 and isHeldBy(job, ARGV[2], report.token) then
    if report.progress then
      changeRare(job).progress = report.progress
      changed[job.id] = job
    end
    for _, line in ipairs(report.lines) do
      tell(job, lines.log, line)
    end
  end
end
flush()
