-- uses: base record notices places job lines gates policy index answer search
-- Jobs that match a filter, in enqueue order, a bounded piece at a time.
-- ARGV[2] JSON: { filter, limit, newest, cursor }; the cursor is the seq to continue after.
-- Answers where to continue (0: nowhere), then the jobs' frames (shared/answer.lua).

local params = cjson.decode(ARGV[2])
local found, cursor = search(readFilter(params.filter), params.cursor, params.newest, params.limit)
return struct.pack(">d", cursor) .. storedFrames(found)
