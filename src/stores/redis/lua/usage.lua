-- uses: base
-- What counts against the limits of a queue and of keys.
-- ARGV[2] the queue's field, ARGV[3] the concurrency key's, ARGV[4] the rate key's, as in `active` (shared/index.lua) and `windows`
-- (shared/limits.lua); the field "" is in neither.
-- Answers the store's time, how many jobs are active in the queue and under the key, and the windows in their stored form.

return {
  struct.pack(">d", now),
  call("HGET", P .. "active", ARGV[2]),
  call("HGET", P .. "active", ARGV[3]),
  call("HGET", P .. "windows", ARGV[2]),
  call("HGET", P .. "windows", ARGV[4]),
}
