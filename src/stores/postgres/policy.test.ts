import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { testbed } from "../../../testbed/index.ts";
import { deliveries, jobStates } from "../../job.ts";
import {
  expiredReason,
  isFragile,
  isIdle,
  isOrphan,
  isRedrivable,
  mayClaimAhead,
  openStates,
  orphanReason,
  outcomeKindOf,
} from "../../state.ts";
import { apply, type Decision, everyCase, reasonOf } from "../../testing/policy-cases.ts";
import { functionFiles } from "./functions/files.ts";
import { newSchema } from "./test/harness.ts";

const server = await testbed.postgres();

describe("the policy in SQL", { skip: server.skip }, () => {
  const schema = newSchema();
  let client: pg.Client;
  before(async () => {
    client = new pg.Client(server.url);
    await client.connect();
    await client.query(`create schema ${schema}; set search_path = ${schema}`);
    await client.query(functionFiles["00-policy.sql"] ?? "");
  });
  after(async () => {
    await client.query(`drop schema ${schema} cascade`);
    await client.end();
  });

  /** The answers of an expression over the columns of these rows. */
  const ask = async (columns: string, expression: string, rows: readonly object[]): Promise<unknown[]> => {
    const { rows: answers } = await client.query<{ answer: unknown }>(
      `select to_json(${expression}) as answer
       from rows from (json_to_recordset($1) as (${columns})) with ordinality as c order by ordinality`,
      [JSON.stringify(rows)],
    );
    return answers.map(({ answer }) => answer);
  };

  test("decides on every combination as state.ts does", async () => {
    const cases = everyCase();
    const answers = await ask(
      "kind text, reason text, cancelled boolean, requested text, delivery text, crashes integer, max_crashes integer",
      "decide(kind, reason, cancelled, requested, delivery, crashes, max_crashes)",
      cases.map(({ job, outcome }) => ({
        kind: outcomeKindOf(outcome),
        reason: reasonOf(outcome),
        cancelled: job.cancelRequested,
        requested: job.reason,
        delivery: job.delivery,
        crashes: job.crashes,
        max_crashes: job.maxCrashes,
      })),
    );
    assert.equal(answers.length, cases.length);
    for (const [n, one] of cases.entries()) {
      const { settlement, story } = one;
      const decision =
        answers[n] === null ? null : (Object.values(answers[n] as object) as unknown as Decision);
      assert.equal(decision === null, settlement === null, JSON.stringify(one));
      if (decision !== null)
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
      `delivery text, crashes integer, "maxCrashes" integer, "concurrencyKey" text, ahead boolean`,
      `array[is_fragile(crashes, "maxCrashes"), may_claim_ahead(delivery, "concurrencyKey" is not null, crashes, ahead)]`,
      jobs,
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
        `state text, "afterFailure" text`,
        `array[is_idle(state), is_open(state), is_redrivable(state), is_orphan("afterFailure", state),
          is_orphan(nullif("afterFailure", 'cancel'), state)]`,
        cases,
      ),
      cases.map(({ state, afterFailure }) => [
        isIdle(state),
        openStates.includes(state),
        isRedrivable(state),
        isOrphan({ afterFailure }, state),
        isOrphan({ afterFailure }, state),
      ]),
    );
  });

  test("gives the reasons of state.ts", async () => {
    const parents = jobStates.map((state) => ({ id: "a's", state }));
    const answers = await ask(
      "id text, state text",
      "array[orphan_reason(id, state), expired_reason()]",
      parents,
    );
    assert.deepEqual(
      answers,
      parents.map((parent) => [orphanReason(parent), expiredReason]),
    );
  });
});
