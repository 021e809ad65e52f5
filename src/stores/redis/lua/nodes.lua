-- uses: base
-- Nodes that were seen.
-- Answers the store's time, then ids and what put-node.lua keeps of each, in turn.

local answer = call("HGETALL", P .. "nodes")
table.insert(answer, 1, struct.pack(">d", now))
return answer
