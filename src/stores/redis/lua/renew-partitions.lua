-- uses: base partition
-- Renews an owner's partitions, or gives them back.
-- ARGV[2] the owner, ARGV[3] leaseMs, or "" to give back, ARGV[4] JSON: [[partition, epoch]].
-- Promise: only a partition that the owner holds under this epoch changes.
-- Answers a byte for each: 1 done, 0 stale.

local marks = {}
for n, held in ipairs(cjson.decode(ARGV[4])) do
  local partition = ownedBy(ARGV[2], held[1], held[2])
  if partition then
    if ARGV[3] == "" then
      partition[OWNER] = ""
    else
      partition[LEASEUNTIL] = now + ARGV[3]
    end
    writePartition(held[1], partition)
  end
  marks[n] = string.char(partition and 1 or 0)
end
return table.concat(marks)
