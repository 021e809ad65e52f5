import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { z } from "zod";
import { defineJob } from "../definition.ts";
import { UnrecoverableError } from "../errors.ts";
import { type HandlerContext, snooze } from "../handler.ts";
import { createInbox } from "../inbox/inbox.ts";
import { sqliteInbox } from "../stores/sqlite/index.ts";
import { until } from "../testing/transports/scene.ts";
import { newReceived } from "./test/memory-source.ts";
import { newInbox, stage } from "./test/stage.ts";

const retry = { attempts: 3, backoff: { delay: 1, max: 5 } } as const;

describe("what a consumer makes of a message", () => {
  test("the handler gets the input as the schema made it, and the facts of the job", async () => {
    const seen: HandlerContext<{ cents: number }>[] = [];
    const job = defineJob({
      name: "pay",
      input: z.object({ cents: z.number(), currency: z.string().default("EUR") }),
      retry: { attempts: 7 },
      run: (context) => void seen.push(context),
    });
    await using scene = await stage({ jobs: [job] });
    await scene.source.send(
      newReceived("pay", { cents: 5 }, { "escapement-id": "invoice%3A42", "escapement-schedule": "nightly" }),
    );
    await until("it is acknowledged", () => scene.source.acked.length === 1);
    const [context] = seen;
    assert.deepEqual(context?.input, { cents: 5, currency: "EUR" });
    assert.equal(context?.job.id, "invoice:42");
    assert.equal(context?.job.schedule, "nightly");
    assert.equal(context?.job.idempotencyKey, "key-of-invoice%3A42".replace("%3A", ":"));
    assert.equal(context?.job.fireAt.toISOString(), "2026-11-15T03:00:00.000Z");
    assert.equal(context?.job.attempt, 1);
    assert.equal(context?.job.attempts, 7);
    assert.deepEqual(scene.consumer.counts, {
      handled: 1,
      duplicates: 0,
      failed: 0,
      dead: 0,
      unburied: 0,
      passedOver: 0,
    });
  });

  test("a second copy of a message is acknowledged and not handled [B5]", async () => {
    let runs = 0;
    const job = defineJob<null>({ name: "once", run: () => void runs++ });
    await using scene = await stage({ jobs: [job] });
    const message = newReceived("once", null);
    await scene.source.send(message);
    await scene.source.send(message, 2);
    await until("both are acknowledged", () => scene.source.acked.length === 2);
    assert.equal(runs, 1);
    assert.equal(scene.consumer.counts.duplicates, 1);
  });

  test("a copy that arrives while the first is at work waits for it, and is not handled [B5]", async () => {
    let runs = 0;
    const gate = Promise.withResolvers<void>();
    const job = defineJob<null>({
      name: "slow",
      run: async () => {
        runs += 1;
        await gate.promise;
      },
    });
    const leaseMs = 3_000;
    const { inbox, path } = newInbox({ lease: leaseMs });
    await using scene = await stage({ jobs: [job], inbox });
    const message = newReceived("slow", null);
    await scene.source.send(message);
    await until("it runs", () => runs === 1);
    using database = new DatabaseSync(path, { readOnly: true });
    const leaseEnd = () =>
      Number(database.prepare("select max(running_until) as at from escapement_inbox").get()?.["at"]);
    const firstEnd = leaseEnd();
    await scene.source.send(message);
    await until("the first lease is over, and it was renewed", () => leaseEnd() > firstEnd + leaseMs);
    assert.deepEqual(scene.source.acked, []);
    gate.resolve();
    await until("both are acknowledged", () => scene.source.acked.length === 2);
    assert.equal(runs, 1);
  });

  test("a handler that fails is tried again with rising attempts, and then the message is dead with its error", async () => {
    const attempts: number[] = [];
    const job = defineJob<null>({
      name: "broken",
      retry,
      run: ({ job: { attempt } }) => {
        attempts.push(attempt);
        throw new Error(`attempt ${attempt}`);
      },
    });
    await using scene = await stage({ jobs: [job] });
    await scene.source.send(newReceived("broken", null));
    await until("it is dead", () => scene.dead.length === 1);
    assert.deepEqual(attempts, [1, 2, 3]);
    assert.match(String(scene.dead[0]?.error), /attempt 3/);
    assert.equal(scene.dead[0]?.tries, 3);
    await until("it is acknowledged", () => scene.source.acked.length === 1);
  });

  test("what the broker has counted counts: a message that was delivered before has fewer attempts left", async () => {
    let runs = 0;
    const job = defineJob<null>({ name: "broken", retry, run: () => Promise.reject(new Error(`${++runs}`)) });
    await using scene = await stage({ jobs: [job] });
    await scene.source.send(newReceived("broken", null), 3);
    await until("it is dead", () => scene.dead.length === 1);
    assert.equal(runs, 1);
  });

  test("what can never work is dead at once: no such job, no input that fits, no headers, no JSON, said so by the handler", async () => {
    const job = defineJob({
      name: "strict",
      input: z.object({ n: z.number() }),
      run: ({ input }) => {
        throw new UnrecoverableError(`never ${input.n}`);
      },
    });
    await using scene = await stage({ jobs: [job] });
    const good = newReceived("strict", { n: 1 });
    const { "escapement-name": _name, ...headers } = newReceived("strict", { n: 1 }).headers;
    await scene.source.send(newReceived("unheard-of", null));
    await scene.source.send(newReceived("strict", { n: "1" }));
    await scene.source.send({ ...good, headers });
    await scene.source.send({ ...newReceived("strict", null), body: "{" });
    await scene.source.send(good);
    await until("all are dead", () => scene.dead.length === 5);
    const texts = scene.dead.map(({ error }) => String(error)).join("\n");
    for (const says of [
      /no definition/,
      /does not fit its schema/,
      /header escapement-name/,
      /not JSON/,
      /never 1/,
    ]) {
      assert.match(texts, says);
    }
    await until("all are acknowledged", () => scene.source.acked.length === 5);
  });

  test("a snooze uses up no attempt", async () => {
    const attempts: number[] = [];
    const job = defineJob<null>({
      name: "later",
      retry: { attempts: 1 },
      run: ({ job: { attempt } }) => {
        attempts.push(attempt);
        return attempts.length < 3 ? snooze(5) : null;
      },
    });
    await using scene = await stage({ jobs: [job] });
    await scene.source.send(newReceived("later", null));
    await until("it is acknowledged", () => scene.source.acked.length === 1);
    assert.deepEqual(attempts, [1, 1, 1]);
  });

  test("a try that takes longer than its timeout has failed, and its signal has fired", async () => {
    let runs = 0;
    const job = defineJob<null>({
      name: "stuck",
      timeout: 20,
      retry,
      run: async ({ signal }) => {
        runs += 1;
        if (runs === 1) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    });
    await using scene = await stage({ jobs: [job] });
    await scene.source.send(newReceived("stuck", null));
    await until("it is acknowledged", () => scene.source.acked.length === 1);
    assert.equal(runs, 2);
    assert.equal(scene.consumer.counts.failed, 1);
  });

  test("an at-most-once job is never started twice; a copy of one that ended is a duplicate", async () => {
    let runs = 0;
    const job = defineJob<string>({
      name: "risky",
      delivery: "at-most-once",
      run: ({ input }) => {
        runs += 1;
        if (input === "fails") throw new Error("no second try");
      },
    });
    await using scene = await stage({ jobs: [job] });
    const headers = { "escapement-delivery": "at-most-once" };
    const [fine, fails] = [newReceived("risky", "fine", headers), newReceived("risky", "fails", headers)];
    await scene.source.send(fine);
    await scene.source.send(fails);
    await until("one is dead", () => scene.dead.length === 1 && scene.source.acked.length === 2);
    for (const copy of [fine, fails]) await scene.source.send(copy, 2);
    await until("the copies are acknowledged", () => scene.source.acked.length === 4);
    assert.deepEqual([runs, scene.dead.length, scene.consumer.counts.duplicates], [2, 1, 2]);
  });

  test("an at-most-once job that died, and was not put away before a stop, is told by the next", async () => {
    const job = defineJob<null>({
      name: "risky",
      delivery: "at-most-once",
      run: () => Promise.reject(new Error("no")),
    });
    const { inbox, path } = newInbox({ lease: 2_000 });
    const message = newReceived("risky", null, { "escapement-delivery": "at-most-once" });
    let tried = 0;
    const down = (): never => {
      tried += 1;
      throw new Error("nobody takes it");
    };
    const first = await stage({ jobs: [job], inbox, onDead: down });
    await first.source.send(message);
    await until("somebody tries to put it away", () => tried > 0);
    await first.consumer.stop();
    assert.deepEqual(first.source.acked, []);
    const next = createInbox({ store: sqliteInbox({ path, durability: "normal" }), lease: 2_000 });
    await using second = await stage({ jobs: [job], inbox: next });
    await second.source.send(message, 2);
    await until("it is told", () => second.dead.length === 1 && second.source.acked.length === 1);
    assert.match(String(second.dead[0]?.error), /lost:/);
    await Promise.all([inbox.close(), first.inbox.close()]);
  });

  for (const deliveries of [1, 2]) {
    test(`an at-most-once job that was begun, and whose end nobody knows, is told as lost (delivery ${deliveries})`, async () => {
      let runs = 0;
      const job = defineJob<null>({ name: "risky", delivery: "at-most-once", run: () => void runs++ });
      await using scene = await stage({ jobs: [job] });
      const message = newReceived("risky", null, { "escapement-delivery": "at-most-once" });
      const key = message.headers["idempotency-key"] ?? "";
      const dead = sqliteInbox({ path: scene.path, durability: "normal" });
      await dead.migrate();
      await dead.begin({ key, holder: "dead", leaseMs: 1, retentionMs: 60_000 });
      await dead.close();
      await scene.source.send(message, deliveries);
      await until("it is told", () => scene.dead.length === 1 && scene.source.acked.length === 1);
      assert.match(String(scene.dead[0]?.error), /lost: .* its outcome is unknown/);
      await scene.source.send(message, deliveries);
      await until("the copy is acknowledged", () => scene.source.acked.length === 2);
      assert.deepEqual([runs, scene.dead.length], [0, 1], "and told once");
    });
  }

  test("an effectively-once effect commits with the marker, and what the handler does after that changes nothing", async () => {
    let runs = 0;
    const job = defineJob<number>({
      name: "transfer",
      delivery: "effectively-once",
      retry,
      async run({ input, tx }) {
        runs += 1;
        await tx((db: DatabaseSync) => {
          db.exec("create table if not exists ledger (cents integer)");
          db.prepare("insert into ledger values (?)").run(input);
          if (runs === 1) throw new Error("rolled back");
        });
        throw new Error("after the commit");
      },
    });
    await using scene = await stage({ jobs: [job] });
    const message = newReceived("transfer", 7, { "escapement-delivery": "effectively-once" });
    await scene.source.send(message);
    await until("it is acknowledged", () => scene.source.acked.length === 1);
    await scene.source.send(message);
    await until("the copy is acknowledged", () => scene.source.acked.length === 2);
    const database = new DatabaseSync(scene.path);
    assert.equal(database.prepare("select count(*) as n from ledger").get()?.["n"], 1);
    database.close();
    assert.equal(runs, 2);
    assert.equal(scene.dead.length, 0);
  });
});
