-- uses: base record notices places aliases job resolve lines gates policy index end quarantine
-- Adds a person's line to the trails of jobs: a log line without a claimer.
-- ARGV[2] JSON: their ids, ARGV[3] the line.

for _, id in ipairs(cjson.decode(ARGV[2])) do
  local job = resolve(id)
  if job then
    local claimer = job[CLAIMER]
    job[CLAIMER] = ""
    tell(job, lines.log, ARGV[3])
    job[CLAIMER] = claimer
  end
end
flush()
