-- uses: base
-- Forgets a node.
-- ARGV[2] its id.

call("HDEL", P .. "nodes", ARGV[2])
