// What src/state.ts decides about a held job, asked for every case that there is: the table from which the stores' own languages get it.

import { AssertionError } from "node:assert";
import { deliveries, jobStates } from "../src/job.ts";
import {
  isFragile,
  isOrphan,
  mayClaimAhead,
  orphanReason,
  outcomeKindOf,
  outcomeKinds,
  settle,
  silence,
  story,
} from "../src/state.ts";

/** What a decision may depend on, and the values that it can have. crashesLeft: 0 stands for fewer, too, and 2 for more. */
const cases = {
  delivery: deliveries,
  isCancelled: [true, false],
  isReasoned: [true, false],
  crashesLeft: [0, 1, 2],
};

/** Values that are recognised in an answer, wherever it puts them. */
const given = { reason: "{reason}", error: "{error}", result: "{result}", requested: "{requested}" };
const attempt = 2_000_003;
const crashes = 1_000_003;
const delayMs = 3_000_003;

/** An outcome of each kind that says all it can say. */
const outcomes = {
  succeed: { kind: "succeed", result: given.result },
  retry: { kind: "retry", delayMs, error: given.error },
  snooze: { kind: "snooze", delayMs },
  release: { kind: "release", delayMs, error: given.error },
  rollback: { kind: "rollback", delayMs, error: given.error },
  die: { kind: "die", reason: given.reason, error: given.error },
  lose: { kind: "lose", reason: given.reason },
  crash: { kind: "crash", reason: given.reason },
  "succeed-without": { kind: "succeed", result: null, notKept: given.reason },
};

/** {kind, rows}: rows are {conditions, decision}, of which the first that fits counts. A decision is null where the core refuses the outcome. */
export function decisions() {
  return outcomeKinds.map((kind) => ({ kind, rows: rowsOf((one) => decide(kind, one), cases) }));
}

function decide(kind, { isCancelled, isReasoned, delivery, crashesLeft }) {
  const outcome = outcomes[kind];
  if (outcomeKindOf(outcome) !== kind)
    throw new Error(`There is no outcome of the kind ${kind} to ask about.`);
  const reason = isReasoned ? given.requested : null;
  const job = {
    delivery,
    attempt,
    crashes,
    maxCrashes: crashes + crashesLeft,
    cancelRequested: isCancelled,
    reason,
  };
  const settled = settleOrRefuse(job, outcome);
  if (settled === null) return null;
  const line = story(outcome);
  return {
    state: settled.state,
    reason: settled.reason?.replaceAll(String(crashes + 1), "{crashes}") ?? null,
    attemptChange: settled.attempt - attempt,
    crashChange: settled.crashes - crashes,
    rollbacks: settled.rollbacks,
    isDelayed: passes(settled.delayMs, delayMs),
    keepsError: passes(settled.error, given.error),
    keepsResult: passes(settled.result, given.result),
    story: line?.kind ?? null,
    tellsReason: passes(line?.text ?? null, given.reason),
    tellsError: passes(line?.error ?? null, given.error),
  };
}

function settleOrRefuse(job, outcome) {
  try {
    return settle(job, outcome);
  } catch (error) {
    if (error instanceof AssertionError) return null;
    throw error;
  }
}

/** Whether what was given is in the answer. Anything else there is beyond this table. */
function passes(value, expected) {
  if (value !== null && value !== expected) throw new Error(`Expected ${expected} or nothing, got ${value}.`);
  return value !== null;
}

/** When a job is fragile: rows as above, with true and false. */
export function fragileRows() {
  const all = { hasCrashed: [true, false], crashesLeft: cases.crashesLeft };
  return rowsOf(({ hasCrashed, crashesLeft }) => {
    const count = hasCrashed ? crashes : 0;
    return isFragile({ crashes: count, maxCrashes: count + crashesLeft });
  }, all);
}

/** When a job may be claimed ahead. */
export function aheadRows() {
  const all = {
    delivery: deliveries,
    isKeyed: [true, false],
    hasCrashed: [true, false],
    isAhead: [true, false],
  };
  return rowsOf(({ delivery, isKeyed, hasCrashed, isAhead }) => {
    const byConcurrency = { concurrencyKey: isKeyed ? "key" : null, rateKey: null };
    const byRate = { concurrencyKey: null, rateKey: isKeyed ? "key" : null };
    const rest = { delivery, crashes: hasCrashed ? 1 : 0, ahead: isAhead };
    const [may, alike] = [byConcurrency, byRate].map((keys) => mayClaimAhead({ ...rest, ...keys }));
    if (may !== alike) throw new Error("The table knows one kind of key.");
    return may;
  }, all);
}

/** The states of a parent that cancel a child which asks for that; none cancels one that runs anyway. */
export const orphaningStates = jobStates.filter((state) => isOrphan({ afterFailure: "cancel" }, state));
if (jobStates.some((state) => isOrphan({ afterFailure: "run" }, state)))
  throw new Error("The table knows no parent whose end cancels a child that runs anyway.");

/** Why a child is cancelled, with {id} and {state} of its parent. */
export const orphanTemplate = orphanReason({ id: "{id}", state: "{state}" });

/** How a claim ends whose holder fell silent: taken ahead or not. */
export const silences = [true, false].map((ahead) => ({ reason: null, ...silence({ ahead }), ahead }));

/** The rows that say what `answer` says of every case. */
function rowsOf(answer, all) {
  const rows = partOf(answer, all, {});
  const last = JSON.stringify(rows.at(-1).decision);
  const end = rows.findLastIndex(({ decision }) => JSON.stringify(decision) !== last);
  return [...rows.slice(0, end + 1), rows.at(-1)];
}

/** Looks at one case after the other, and leaves out what makes no difference. The last row of each part needs no condition. */
function partOf(answer, left, chosen) {
  const [[name, values] = [], ...others] = Object.entries(left);
  if (name === undefined) return [{ conditions: [], decision: answer(chosen) }];
  const groups = [];
  for (const value of values) {
    const rows = partOf(answer, Object.fromEntries(others), { ...chosen, [name]: value });
    const same = groups.find((group) => JSON.stringify(group.rows) === JSON.stringify(rows));
    if (same) same.values.push(value);
    else groups.push({ rows, values: [value] });
  }
  return groups.flatMap(({ rows, values: some }, place) => {
    const condition = place === groups.length - 1 ? [] : [{ name, values: some }];
    return rows.map((row) => ({ ...row, conditions: [...condition, ...row.conditions] }));
  });
}
