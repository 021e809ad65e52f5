// Writes the decisions of src/state.ts in the languages of stores that decide on the server: SQL for Postgres, Lua for Redis.

import {
  endedStates,
  expiredReason,
  idleStates,
  openStates,
  outcomeKinds,
  redrivableStates,
} from "../src/state.ts";
import {
  aheadRows,
  decisions,
  fragileRows,
  orphaningStates,
  orphanTemplate,
  silences,
} from "./policy-table.mjs";

/** The files, by their paths. */
export function policyFiles() {
  return {
    "src/stores/postgres/functions/00-policy.sql": sqlFile(),
    "src/stores/redis/lua/shared/policy.lua": luaFile(),
    "src/stores/redis/lua/shared/states.lua": luaStates(),
  };
}

const origin = "-- Made from src/state.ts by `npm run generate`; do not edit. Change state.ts instead.";

/** The pieces of a template such as `its parent {id} is {state}`. */
function pieces(template, text, names) {
  return template
    .split(/(\{\w+\})/)
    .filter((piece) => piece !== "")
    .map((piece) => names[piece] ?? text(piece));
}

/** crashesLeft in a condition is a range: the values are small numbers in order, and the largest stands for more. */
function range(values, left) {
  const [first, last] = [values[0], values.at(-1)];
  if (last === 2) return `${left} >= ${first}`;
  return first === 0 ? `${left} <= ${last}` : `${left} = ${last}`;
}

// ── SQL ─────────────────────────────────────────────────────────────────────────────────────────────────

const sqlText = (text) => `'${text.replaceAll("'", "''")}'`;
const sqlValue = (value) =>
  value === null ? "null" : typeof value === "string" ? sqlText(value) : String(value);

const sqlConditions = {
  isCancelled: ([value]) => (value ? "p_cancelled" : "not p_cancelled"),
  isReasoned: ([value]) => `p_requested is ${value ? "not null" : "null"}`,
  delivery: (values) =>
    values.length === 1
      ? `p_delivery = ${sqlText(values[0])}`
      : `p_delivery in (${values.map(sqlText).join(", ")})`,
  crashesLeft: (values) => range(values, "p_max_crashes - p_crashes"),
  hasCrashed: ([value]) => (value ? "p_crashes > 0" : "p_crashes = 0"),
  isKeyed: ([value]) => (value ? "p_keyed" : "not p_keyed"),
  isAhead: ([value]) => (value ? "p_ahead" : "not p_ahead"),
};

const sqlCondition = (conditions) =>
  conditions.map(({ name, values }) => sqlConditions[name](values)).join(" and ");

function sqlReason(reason) {
  if (reason === null) return "null";
  const names = { "{reason}": "p_reason", "{requested}": "p_requested", "{crashes}": "p_crashes + 1" };
  const parts = pieces(reason, sqlText, names);
  return parts.map((part) => (parts.length > 1 && part.includes("+") ? `(${part})` : part)).join(" || ");
}

function sqlDecision(decision) {
  if (decision === null) return "null";
  const { reason, state, ...rest } = decision;
  return `row(${[sqlText(state), sqlReason(reason), ...Object.values(rest).map(sqlValue)].join(", ")})::decision`;
}

/** Rows of true and false as one expression, which the planner can put in place of the call. */
function sqlBoolean(rows) {
  const lines = rows.map(({ conditions, decision }) =>
    conditions.length === 0 ? `else ${decision}` : `when ${sqlCondition(conditions)} then ${decision}`,
  );
  return `case ${lines.join(" ")} end`;
}

function sqlKind({ kind, rows }) {
  const returns = rows.map(({ conditions, decision }) => {
    const result = `return ${sqlDecision(decision)};`;
    if (conditions.length === 0) return `    ${result}`;
    return `    if ${sqlCondition(conditions)} then\n      ${result}\n    end if;`;
  });
  return [`  if p_kind = ${sqlText(kind)} then`, ...returns, "  end if;"].join("\n");
}

const sqlList = (states) => states.map(sqlText).join(", ");

function sqlFile() {
  const orphan = pieces(orphanTemplate, sqlText, { "{id}": "p_id", "{state}": "p_state" });
  return `${origin}

-- What a store writes when a claim ends. attempt_change, crash_change and rollbacks are added; is_delayed: the delay that was given moves the
-- job's time; keeps_error, keeps_result: what was given is kept. story: the line of the trail, with the reason or the error that was given.
create type decision as (
  state text, reason text, attempt_change integer, crash_change integer, rollbacks integer, is_delayed boolean, keeps_error boolean,
  keeps_result boolean, story text, tells_reason boolean, tells_error boolean
);

-- Decides the next state of a held job (settle and story in state.ts). p_reason: that of the outcome; p_requested: why its cancellation was requested.
-- Null where such an outcome is refused.
create function decide(
  p_kind text, p_reason text, p_cancelled boolean, p_requested text, p_delivery text, p_crashes integer, p_max_crashes integer
) returns decision language plpgsql immutable as $$
begin
${decisions().map(sqlKind).join("\n")}
  raise exception 'there is no outcome of the kind %', p_kind;
end
$$;

-- isFragile in state.ts.
create function is_fragile(p_crashes integer, p_max_crashes integer) returns boolean language sql immutable as $$
  select ${sqlBoolean(fragileRows())}
$$;

-- mayClaimAhead in state.ts.
create function may_claim_ahead(p_delivery text, p_keyed boolean, p_crashes integer, p_ahead boolean) returns boolean language sql immutable as $$
  select ${sqlBoolean(aheadRows())}
$$;

-- idleStates, openStates and redrivableStates in state.ts.
create function is_idle(p_state text) returns boolean language sql immutable as $$ select p_state in (${sqlList(idleStates)}) $$;
create function is_open(p_state text) returns boolean language sql immutable as $$ select p_state in (${sqlList(openStates)}) $$;
create function is_redrivable(p_state text) returns boolean language sql immutable as $$ select p_state in (${sqlList(redrivableStates)}) $$;

-- isOrphan in state.ts. Only 'run' keeps a child.
create function is_orphan(p_after_failure text, p_parent_state text) returns boolean language sql immutable as $$
  select p_after_failure is distinct from 'run' and p_parent_state in (${sqlList(orphaningStates)})
$$;

-- orphanReason in state.ts.
create function orphan_reason(p_id text, p_state text) returns text language sql immutable as $$
  select ${orphan.join(" || ")}
$$;

-- expiredReason in state.ts.
create function expired_reason() returns text language sql immutable as $$
  select ${sqlText(expiredReason)}
$$;
`;
}

// ── Lua ─────────────────────────────────────────────────────────────────────────────────────────────────

const luaText = (text) => JSON.stringify(text);
const luaName = (name) => name.replaceAll("-", "").toUpperCase();
const luaValue = (value) =>
  value === null ? "nil" : typeof value === "string" ? luaText(value) : String(value);

const luaConditions = {
  isCancelled: ([value]) => (value ? "isCancelled" : "not isCancelled"),
  isReasoned: ([value]) => (value ? "requested" : "not requested"),
  delivery: (values) => {
    const equal = values.map((value) => `delivery == ${luaName(value)}`);
    return equal.length === 1 ? equal[0] : `(${equal.join(" or ")})`;
  },
  crashesLeft: (values) => range(values, "maxCrashes - crashes").replace(" = ", " == "),
  hasCrashed: ([value]) => (value ? "crashes > 0" : "crashes == 0"),
  isKeyed: ([value]) => (value ? "isKeyed" : "not isKeyed"),
  isAhead: ([value]) => (value ? "isAhead" : "not isAhead"),
};

const luaCondition = (conditions) =>
  conditions.map(({ name, values }) => luaConditions[name](values)).join(" and ");

function luaReason(reason) {
  if (reason === null) return "nil";
  const names = { "{reason}": "reason", "{requested}": "requested", "{crashes}": "(crashes + 1)" };
  return pieces(reason, luaText, names).join(" .. ");
}

function luaDecision(decision) {
  if (decision === null) return "nil";
  const { reason, state, ...rest } = decision;
  return [luaName(state), luaReason(reason), ...Object.values(rest).map(luaValue)].join(", ");
}

function luaReturns(rows, indent, write) {
  return rows.map(({ conditions, decision }) =>
    conditions.length === 0
      ? `${indent}return ${write(decision)}`
      : `${indent}if ${luaCondition(conditions)} then return ${write(decision)} end`,
  );
}

function luaKind({ kind, rows }, place) {
  return [
    `  ${place === 0 ? "if" : "elseif"} kind == ${luaName(kind)} then`,
    ...luaReturns(rows, "    ", luaDecision),
  ].join("\n");
}

function luaFile() {
  const numbers = outcomeKinds.map((_, place) => place + 1);
  const orphan = pieces(orphanTemplate, luaText, { "{id}": "id", "{state}": "state" });
  const silent = silences.map(({ kind, reason, ahead }) => {
    const condition = ahead ? [{ name: "isAhead", values: [true] }] : [];
    return { conditions: condition, decision: [luaName(kind), luaValue(reason)].join(", ") };
  });
  return `${origin}

local ${outcomeKinds.map(luaName).join(", ")} = ${numbers.join(", ")}

-- Decides the next state of a held job (settle and story in state.ts). \`reason\` is that of the outcome, \`requested\` why its cancellation was requested.
-- Returns state, reason, what to add to attempt, crashes and rollbacks, whether the delay, the error and the result that were given are kept,
-- the line of the trail and whether it has the reason and the error. Nil where such an outcome is refused.
local function decide(kind, reason, isCancelled, requested, delivery, crashes, maxCrashes)
${decisions().map(luaKind).join("\n")}
  end
  error("there is no outcome of the kind " .. tostring(kind))
end

-- isFragile in state.ts.
local function isFragileAfter(crashes, maxCrashes)
${luaReturns(fragileRows(), "  ", String).join("\n")}
end

-- mayClaimAhead in state.ts.
local function mayClaimAhead(delivery, isKeyed, crashes, isAhead)
${luaReturns(aheadRows(), "  ", String).join("\n")}
end

-- silence in state.ts: the outcome and its reason.
local function silenceOf(isAhead)
${luaReturns(silent, "  ", String).join("\n")}
end

-- isOrphan in state.ts.
local function isOrphan(runsAfterFailure, parentState)
  return not runsAfterFailure and (${orphaningStates.map((state) => `parentState == ${luaName(state)}`).join(" or ")})
end

-- orphanReason in state.ts.
local function orphanReason(id, state)
  return ${orphan.join(" .. ")}
end

-- expiredReason in state.ts.
local expiredReason = ${luaText(expiredReason)}
`;
}

function luaStates() {
  const set = (states) => `{ ${states.map((state) => `[${luaName(state)}] = true`).join(", ")} }`;
  return `${origin}

-- idleStates, openStates, redrivableStates and endedStates in state.ts.
local idleStates = ${set(idleStates)}
local openStates = ${set(openStates)}
local redrivableStates = ${set(redrivableStates)}
local endedStates = ${set(endedStates)}
`;
}
