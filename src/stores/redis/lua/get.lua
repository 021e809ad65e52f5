-- uses: base record aliases job resolve answer
-- Jobs by id or alias.
-- ARGV[2] JSON: the ids.
-- Answers a byte for each, 1 if it exists; then the frames of those that do (shared/answer.lua).

local ids, marks, found = cjson.decode(ARGV[2]), {}, {}
readJobs(ids)
for n, id in ipairs(ids) do
  local job = resolve(id)
  marks[n] = string.char(job and 1 or 0)
  if job then found[#found + 1] = job end
end
return table.concat(marks) .. storedFrames(found)
