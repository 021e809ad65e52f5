-- Made from src/state.ts by `npm run generate`; do not edit. Change state.ts instead.

-- idleStates, openStates, redrivableStates and endedStates in state.ts.
local idleStates = { [BLOCKED] = true, [WAITING] = true }
local openStates = { [BLOCKED] = true, [WAITING] = true, [ACTIVE] = true }
local redrivableStates = { [DEAD] = true, [LOST] = true }
local endedStates = { [SUCCEEDED] = true, [CANCELLED] = true, [DEAD] = true, [LOST] = true }
