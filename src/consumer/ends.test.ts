import assert from "node:assert/strict";
import { describe, test } from "node:test";
import pg from "pg";
import { testbed } from "../../testbed/index.ts";
import { defineJob } from "../definition.ts";
import { createInbox } from "../inbox/inbox.ts";
import { postgresInbox } from "../stores/postgres/index.ts";
import { sqliteInbox } from "../stores/sqlite/index.ts";
import { until } from "../testing/transports/scene.ts";
import { newReceived } from "./test/memory-source.ts";
import { newGraveyard, newInbox, stage } from "./test/stage.ts";

describe("messages that come to an end whatever happens", () => {
  test("a handler that ignores its timeout is given up one lease later, and what it writes then is refused", async () => {
    const { inbox } = newInbox({ lease: 1_000 });
    const second = Promise.withResolvers<void>();
    const late = Promise.withResolvers<unknown>();
    const job = defineJob<string>({
      name: "stuck",
      timeout: 20,
      retry: { attempts: 2, backoff: { delay: 1 } },
      run: async ({ input, tx, job: { attempt } }) => {
        if (input === "good") return;
        // The next try has begun, so this one was given up.
        if (attempt === 2) second.resolve();
        await second.promise;
        if (attempt === 1) late.resolve(await tx(() => null).catch((error: unknown) => error));
        await new Promise(() => {});
      },
    });
    await using scene = await stage({ jobs: [job], concurrency: 1, inbox });
    await scene.source.send(newReceived("stuck", "stuck", { "escapement-id": "stuck" }));
    await scene.source.send(newReceived("stuck", "good", { "escapement-id": "good" }));
    await until("both have ended", () => scene.source.acked.length === 2);
    assert.equal(scene.dead.length, 1);
    assert.match(String(scene.dead[0]?.error), /longer than its timeout of 20 ms/);
    assert.equal(((await late.promise) as { code?: string }).code, "stale-claim");
  });

  test("an effect that a handler which was given up has under way does not take effect any more", async (context) => {
    const server = await testbed.postgres();
    if (server.skip !== false) return context.skip(server.skip);
    const pool = new pg.Pool({ connectionString: server.url });
    await pool.query("create table if not exists late_effects (job text)");
    await using inbox = createInbox({ store: postgresInbox(server.url), lease: 300 });
    const go = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<unknown>();
    const job = defineJob<null>({
      name: "stuck",
      timeout: 20,
      retry: { attempts: 1 },
      run: async ({ tx, job: { id } }) => {
        const effect = tx(async (db: { query(sql: string, values: string[]): Promise<unknown> }) => {
          await db.query("insert into late_effects values ($1)", [id]);
          await go.promise;
        });
        ended.resolve(await effect.catch((error: unknown) => error));
      },
    });
    await using scene = await stage({ jobs: [job], inbox });
    await scene.source.send(newReceived("stuck", null, { "escapement-id": "late" }));
    await until("it is put away", () => scene.dead.length === 1);
    go.resolve();
    assert.equal(((await ended.promise) as { code?: string }).code, "stale-claim");
    assert.equal((await pool.query("select 1 from late_effects")).rows.length, 0);
    await pool.end();
  });

  test("a key that no inbox would take is dead at once", async () => {
    await using scene = await stage({ jobs: [defineJob<null>({ name: "work", run: () => {} })] });
    for (const key of ["a%0Ab", "k".repeat(513)])
      await scene.source.send(newReceived("work", null, { "idempotency-key": key }));
    await until("both are put away", () => scene.dead.length === 2);
    for (const { error } of scene.dead) assert.match(String(error), /expected the header idempotency-key/);
  });

  test("a dead message is put away whatever its error and its headers hold", async () => {
    const graveyard = newGraveyard();
    const job = defineJob<null>({
      name: "work",
      retry: { attempts: 1 },
      run: () => {
        throw new Error(`${"x".repeat(999)}😀`);
      },
    });
    await using scene = await stage({ jobs: [job], deadLetter: graveyard.route });
    const odd = { "not a name": "dropped", "x-odd": "two\nlines", "x-plain": "as it was, 50 %" };
    await scene.source.send(newReceived("work", null, odd));
    await until("it is acknowledged", () => scene.source.acked.length === 1);
    const headers = graveyard.published[0]?.headers ?? {};
    assert.equal(decodeURIComponent(headers["escapement-error"] ?? ""), `${"x".repeat(999)}\ufffd`);
    assert.deepEqual(
      ["not a name", "x-odd", "x-plain"].map((name) => headers[`escapement-original-${name}`]),
      [undefined, "two%0Alines", "as it was, 50 %"],
    );
  });

  test("an at-most-once job that a person has redriven starts once more, and once", async () => {
    let calls = 0;
    const job = defineJob<null>({
      name: "once",
      delivery: "at-most-once",
      run: () => {
        calls += 1;
        if (calls === 1) throw new Error("broken");
      },
    });
    await using scene = await stage({ jobs: [job] });
    const send = (redrives: string) =>
      scene.source.send(
        newReceived("once", null, {
          "escapement-id": "a",
          "escapement-delivery": "at-most-once",
          "escapement-redrives": redrives,
        }),
      );
    await send("0");
    await until("it is put away", () => scene.dead.length === 1);
    await send("0");
    await send("1");
    await send("1");
    await until("all are acknowledged", () => scene.source.acked.length === 4);
    assert.deepEqual([calls, scene.consumer.counts.handled, scene.consumer.counts.duplicates], [2, 1, 2]);
  });

  test("what was given back at a stop has used up the attempts that failed, and not its delivery", async () => {
    const job = defineJob<string>({
      name: "work",
      retry: { attempts: 5, backoff: { delay: "1h" } },
      run: async ({ input, signal }) => {
        if (input === "fails") throw new Error("later");
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
    });
    await using scene = await stage({ jobs: [job], concurrency: 2 });
    for (const name of ["fails", "is interrupted", "runs too", "waits"])
      await scene.source.send(newReceived("work", name, { "escapement-id": name }), 2);
    await until("one has failed", () => scene.consumer.counts.failed === 1);
    await scene.consumer.stop({ timeout: 10 });
    assert.deepEqual(Object.fromEntries(scene.source.costs), {
      fails: 1,
      "is interrupted": 0,
      "runs too": 0,
      waits: 0,
    });
  });

  test("every message that is put away is counted as dead, also one that cannot be understood", async () => {
    const job = defineJob<null>({
      name: "work",
      retry: { attempts: 2, backoff: { delay: 1 } },
      run: () => {
        throw new Error("always");
      },
    });
    await using scene = await stage({ jobs: [job], metrics: true });
    await scene.source.send(newReceived("work", null));
    await scene.source.send(newReceived("unheard-of", null));
    await until("both are put away", () => scene.dead.length === 2);
    const text = await scene.consumer.metrics();
    const counted = (name: string, outcome: string) =>
      text.match(
        new RegExp(`^escapement_consumed_total\\{name="${name}",outcome="${outcome}"\\} (\\d+)`, "m"),
      )?.[1];
    assert.deepEqual(
      [counted("work", "failed"), counted("work", "dead"), counted("", "dead")],
      ["1", "1", "1"],
    );
  });

  test("an inbox that was closed stays closed", async () => {
    const { path } = newInbox();
    const store = sqliteInbox(path);
    const inbox = createInbox({ store });
    await inbox.handle({ key: "a" }, () => null);
    await inbox.close();
    await assert.rejects(
      inbox.handle({ key: "b" }, () => null),
      { code: "stopped" },
    );
  });
});
