-- uses: base partition
-- The partitions of a Redis slot, and who holds them. ARGV[2] longestLeaseMs. It writes nothing.
-- Answers how many partitions the namespace has, and should have, then for each of this slot its number, epoch, slots, mark and owner; the
-- owner is empty if it is free or its lease has run out.

local meta = call("HMGET", KEYS[1], "partitions", "wanted-partitions")
local frames = { struct.pack(">I4I4", tonumber(meta[1]) or 0, tonumber(meta[2]) or 0) }
for _, number in ipairs(call("HKEYS", P .. "partitions")) do
  local partition = tonumber(number) and readPartition(number)
  if partition then
    local owner = isHeld(partition, tonumber(ARGV[2])) and partition[OWNER] or ""
    frames[#frames + 1] = struct.pack(
      ">I4dHHdHc0",
      tonumber(number),
      partition[EPOCH],
      partition[FIRSTSLOT],
      partition[ENDSLOT],
      partition[MARK],
      #owner,
      owner
    )
  end
end
return table.concat(frames)
