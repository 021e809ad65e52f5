-- uses: base
-- Creates the namespace, or checks that this library may use it.
-- ARGV[2] the version of the layout that this library knows, ARGV[3] how many slots it must have.
-- Promise: the number of slots is decided once. If several nodes start at once, one creates it, since a script runs alone.
-- Hash `meta`: version, breaking (the oldest version that may still use it), slots, seq, partitions, wanted-partitions.
-- Answers { version, breaking, slots } as they are now.

if call("EXISTS", KEYS[1]) == 0 then call("HSET", KEYS[1], "version", ARGV[2], "breaking", 1, "slots", ARGV[3]) end
return call("HMGET", KEYS[1], "version", "breaking", "slots")
