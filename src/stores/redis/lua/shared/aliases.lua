-- Absorbed and debounced ids, with the job that each refers to. Hash `aliases`: id -> id of the job; set `aliasesof:<id>`: its aliases.

local ALIASES = P .. "aliases"
local aliases, noAliases = {}, nil

-- False if there is none.
local function aliasOf(id)
  if noAliases == nil then noAliases = call("EXISTS", ALIASES) == 0 end
  if noAliases then return false end
  if aliases[id] == nil then aliases[id] = call("HGET", ALIASES, id) end
  return aliases[id]
end
