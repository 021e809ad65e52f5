import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import { deliveries, jobStates } from "../../job.ts";
import {
  expiredReason,
  isFragile,
  isIdle,
  isOrphan,
  isRedrivable,
  isTerminal,
  mayClaimAhead,
  openStates,
  orphanReason,
  outcomeKindOf,
  outcomeKinds,
  silence,
} from "../../state.ts";
import { apply, type Decision, everyCase, reasonOf } from "../../testing/policy-cases.ts";
import { sourceOf } from "./connection/scripts.ts";
import { deliveryNumber, stateAt, stateNumber } from "./rows.ts";
import { admin } from "./test/admin.ts";

const server = await testbed.redis();

/** Gives each list of arguments to an expression in Lua, whose values are answered as a list. */
function scriptFor(expression: string, amount: number): string {
  return sourceOf(`-- uses: base record policy states
local answers = {}
for n, a in ipairs(cjson.decode(ARGV[2])) do
  for place = 1, 9 do
    if a[place] == cjson.null then a[place] = nil end
  end
  local values = { ${expression} }
  for place = 1, ${amount} do
    if values[place] == nil then values[place] = cjson.null end
  end
  answers[n] = values
end
return cjson.encode(answers)
`);
}

async function ask(
  expression: string,
  amount: number,
  rows: readonly (readonly unknown[])[],
): Promise<unknown[][]> {
  await using client = await admin(server.url);
  const answer = await client.call(
    "EVAL",
    scriptFor(expression, amount),
    "1",
    "policy:meta",
    "0",
    JSON.stringify(rows),
  );
  return JSON.parse(String(answer));
}

const kindNumber = (kind: (typeof outcomeKinds)[number]): number => outcomeKinds.indexOf(kind) + 1;

describe("the policy in Lua", { skip: server.skip }, () => {
  test("decides on every combination as state.ts does", async () => {
    const cases = everyCase();
    const answers = await ask(
      "decide(a[1], a[2], a[3], a[4], a[5], a[6], a[7])",
      11,
      cases.map(({ job, outcome }) => [
        kindNumber(outcomeKindOf(outcome)),
        reasonOf(outcome) ?? "",
        job.cancelRequested,
        job.reason,
        deliveryNumber(job.delivery),
        job.crashes,
        job.maxCrashes,
      ]),
    );
    assert.equal(answers.length, cases.length);
    for (const [n, one] of cases.entries()) {
      const { settlement, story } = one;
      const [state, ...rest] = answers[n] ?? [];
      assert.equal(state === null, settlement === null, JSON.stringify(one));
      if (settlement === null) continue;
      const decision = [stateAt(Number(state)), ...rest] as unknown as Decision;
      assert.deepEqual(apply(one, decision), { settlement, story }, JSON.stringify(one));
    }
  });

  test("says which jobs are fragile and which may be claimed ahead as state.ts does", async () => {
    const counts = [0, 1, 2, 3, 4];
    const jobs = deliveries.flatMap((delivery) =>
      counts.flatMap((crashes) =>
        counts.flatMap((maxCrashes) =>
          [null, "key"].flatMap((key) =>
            [false, true].map((ahead) => ({
              delivery,
              crashes,
              maxCrashes,
              concurrencyKey: key,
              rateKey: null,
              ahead,
            })),
          ),
        ),
      ),
    );
    const answers = await ask(
      "isFragileAfter(a[2], a[3]), mayClaimAhead(a[1], a[4], a[2], a[5])",
      2,
      jobs.map(({ delivery, crashes, maxCrashes, concurrencyKey, ahead }) => [
        deliveryNumber(delivery),
        crashes,
        maxCrashes,
        concurrencyKey !== null,
        ahead,
      ]),
    );
    assert.deepEqual(
      answers,
      jobs.map((job) => [isFragile(job), mayClaimAhead(job)]),
    );
  });

  test("says which jobs may be changed, cancelled and redriven, and which children are cancelled, as state.ts does", async () => {
    const cases = jobStates.flatMap((state) =>
      (["cancel", "run"] as const).map((afterFailure) => ({ state, afterFailure })),
    );
    assert.deepEqual(
      await ask(
        "idleStates[a[1]] or false, openStates[a[1]] or false, redrivableStates[a[1]] or false, endedStates[a[1]] or false, isOrphan(a[2], a[1])",
        5,
        cases.map(({ state, afterFailure }) => [stateNumber(state), afterFailure === "run"]),
      ),
      cases.map(({ state, afterFailure }) => [
        isIdle(state),
        openStates.includes(state),
        isRedrivable(state),
        isTerminal(state),
        isOrphan({ afterFailure }, state),
      ]),
    );
  });

  test("gives the reasons of state.ts", async () => {
    const parents = jobStates.map((state) => ({ id: 'a"s', state }));
    const answers = await ask(
      "orphanReason(a[1], a[2]), expiredReason",
      2,
      parents.map(({ id, state }) => [id, state]),
    );
    assert.deepEqual(
      answers,
      parents.map((parent) => [orphanReason(parent), expiredReason]),
    );
    const silences = [true, false].map((ahead) => silence({ ahead }));
    assert.deepEqual(
      await ask("silenceOf(a[1])", 2, [[true], [false]]),
      silences.map((outcome) => [kindNumber(outcomeKindOf(outcome)), reasonOf(outcome)]),
    );
  });
});
