import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { z } from "zod";
import { defineJob } from "../definition.ts";
import { UnrecoverableError } from "../errors.ts";
import { type HandlerContext, snooze } from "../handler.ts";
import { createInbox, type Inbox } from "../inbox/inbox.ts";
import { silentLogger } from "../log.ts";
import type { Message } from "../message.ts";
import { sqliteInbox } from "../stores/sqlite/index.ts";
import { until } from "../testing/transports/scene.ts";
import type { Route } from "../transport.ts";
import { type ConsumeOptions, consume, type DeadMessage } from "./index.ts";
import { MemorySource, newReceived } from "./test/memory-source.ts";

const retry = { attempts: 3, backoff: { delay: 1, max: 5 } } as const;

function newInbox(options: { readonly lease?: number } = {}): { inbox: Inbox; path: string } {
  const path = join(mkdtempSync(join(tmpdir(), "escapement-consumer-")), "inbox.db");
  return { path, inbox: createInbox({ store: sqliteInbox({ path, durability: "normal" }), ...options }) };
}

interface Stage extends AsyncDisposable {
  readonly source: MemorySource;
  readonly dead: DeadMessage[];
  readonly consumer: ReturnType<typeof consume>;
  readonly path: string;
  readonly inbox: Inbox;
}

async function stage(
  options: Pick<ConsumeOptions, "jobs"> & Partial<ConsumeOptions>,
  prepare: (source: MemorySource) => void = () => {},
): Promise<Stage> {
  const source = new MemorySource();
  prepare(source);
  const dead: DeadMessage[] = [];
  const { inbox, path } = newInbox();
  const onDead =
    options.deadLetter === undefined ? { onDead: (one: DeadMessage) => void dead.push(one) } : {};
  const consumer = consume({ from: source, inbox, log: silentLogger, ...onDead, ...options });
  await consumer.start();
  const dispose = async (): Promise<void> => {
    await consumer.stop();
    await inbox.close();
  };
  return { source, dead, consumer, path, inbox, [Symbol.asyncDispose]: dispose };
}

describe("a consumer", () => {
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
    assert.deepEqual(scene.consumer.counts, { handled: 1, duplicates: 0, failed: 0, dead: 0 });
  });

  test("B5: a second copy of a message is acknowledged and not handled", async () => {
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

  test("B5: a copy that arrives while the first is at work waits for it, and is not handled", async () => {
    let runs = 0;
    const gate = Promise.withResolvers<void>();
    const job = defineJob<null>({
      name: "slow",
      run: async () => {
        runs += 1;
        await gate.promise;
      },
    });
    const { inbox } = newInbox({ lease: 300 });
    await using scene = await stage({ jobs: [job], inbox });
    const message = newReceived("slow", null);
    await scene.source.send(message);
    await until("it runs", () => runs === 1);
    await scene.source.send(message);
    // Longer than the lease: it is renewed.
    await new Promise((resolve) => setTimeout(resolve, 700));
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

  test("what the broker has counted counts: a message that was delivered before has fewer tries left", async () => {
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

  test("a snooze costs no try", async () => {
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

  test("messages of one key are handled one after the other, also while one waits for its next try; others go on", async () => {
    const order: string[] = [];
    let failed = false;
    const job = defineJob<string>({
      name: "ordered",
      retry: { attempts: 5, backoff: { delay: 50 } },
      run: ({ input }) => {
        if (input === "a1" && !failed) {
          failed = true;
          throw new Error("not yet");
        }
        order.push(input);
      },
    });
    await using scene = await stage({ jobs: [job] });
    for (const input of ["a1", "a2", "b1", "a3"])
      await scene.source.send(newReceived("ordered", input, { key: input[0] ?? "" }));
    await until("all are acknowledged", () => scene.source.acked.length === 4);
    assert.deepEqual(
      order.filter((input) => input.startsWith("a")),
      ["a1", "a2", "a3"],
    );
    assert.equal(order[0], "b1");
  });

  test("no more handlers at a time than allowed, and no more messages in hand", async () => {
    let running = 0;
    let most = 0;
    const job = defineJob<null>({
      name: "busy",
      run: async () => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setTimeout(resolve, 5));
        running -= 1;
      },
    });
    await using scene = await stage({ jobs: [job], concurrency: 3, maxInHand: 5 });
    for (let index = 0; index < 30; index++) await scene.source.send(newReceived("busy", null));
    await until("all are acknowledged", () => scene.source.acked.length === 30);
    assert.equal(most, 3);
  });

  test("an at-most-once job is never started twice, and one whose outcome is unknown is reported", async () => {
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
    const fine = newReceived("risky", "fine", headers);
    await scene.source.send(fine);
    await scene.source.send(newReceived("risky", "fails", headers));
    await until("one is dead", () => scene.dead.length === 1 && scene.source.acked.length === 2);
    await scene.source.send(fine, 2);
    await until("the copy is reported", () => scene.dead.length === 2);
    assert.match(String(scene.dead[1]?.error), /lost: .* its outcome is not known/);
    assert.equal(runs, 2);
  });

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

  test("a handler in a thread runs too", async () => {
    const module = new URL("../../test/handlers/work.ts", import.meta.url);
    const job = defineJob<unknown>({ name: "thread", run: module });
    await using scene = await stage({ jobs: [job] });
    await scene.source.send(newReceived("thread", { how: "return" }));
    await until("it ends", () => scene.source.acked.length === 1);
    assert.equal(scene.consumer.counts.handled, 1, String(scene.dead[0]?.error));
  });

  test("a dead message goes to its destination with its error, and is acknowledged only when that has it", async () => {
    const published: Message[] = [];
    let isUp = false;
    const deadLetter: Route = {
      destination: "graveyard",
      dispatchTimeoutMs: 1_000,
      transport: {
        kind: "memory",
        address: "",
        open: async () => ({
          publish: async (messages) => {
            if (!isUp)
              return messages.map(() => ({ kind: "refused", permanent: false, error: new Error("down") }));
            published.push(...messages);
            return messages.map(() => ({ kind: "acknowledged" }));
          },
          close: async () => {},
        }),
      },
    };
    await using scene = await stage({ jobs: [], deadLetter });
    await scene.source.send(newReceived("unheard-of", { a: 1 }, { key: "k" }));
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.deepEqual(scene.source.acked, []);
    isUp = true;
    await until("it is acknowledged", () => scene.source.acked.length === 1);
    const [message] = published;
    assert.equal(message?.destination, "graveyard");
    assert.equal(message?.key, "k");
    assert.equal(message?.body, '{"a":1}');
    assert.match(
      decodeURIComponent(message?.headers["escapement-error"] ?? ""),
      /no definition of the job "unheard-of"/,
    );
    assert.equal(message?.headers["escapement-name"], "unheard-of");
  });

  test("stopping lets what runs finish, gives back what waits, and takes nothing more", async () => {
    const gate = Promise.withResolvers<void>();
    const started: string[] = [];
    const job = defineJob<string>({
      name: "work",
      retry: { attempts: 5, backoff: { delay: "1h" } },
      run: async ({ input }) => {
        started.push(input);
        if (input === "fails") throw new Error("later");
        await gate.promise;
      },
    });
    await using scene = await stage({ jobs: [job], concurrency: 2 });
    const names = ["fails", "runs", "runs-too", "waits"];
    for (const name of names) await scene.source.send(newReceived("work", name, { "escapement-id": name }));
    await until("two run", () => started.length === 3);
    const stopped = scene.consumer.stop({ timeout: "10s" });
    await until("what waits is given back", () => scene.source.released.length === 1);
    gate.resolve();
    await stopped;
    assert.deepEqual(scene.source.acked.toSorted(), ["runs", "runs-too"]);
    assert.deepEqual(scene.source.released.toSorted(), ["fails", "waits"]);
  });

  test("a handler that does not finish in time is told to stop, and its message is given back", async () => {
    const job = defineJob<null>({
      name: "endless",
      run: async ({ signal }) => {
        await new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason)),
        );
      },
    });
    await using scene = await stage({ jobs: [job] });
    await scene.source.send(newReceived("endless", null, { "escapement-id": "endless" }));
    await new Promise((resolve) => setTimeout(resolve, 50));
    await scene.consumer.stop({ timeout: 10 });
    assert.deepEqual(scene.source.released, ["endless"]);
    assert.deepEqual(scene.source.acked, []);
    assert.equal(
      (await scene.inbox.hold({ key: "key-of-endless" })).outcome,
      "held",
      "the key is free at once",
    );
  });

  test("what is in hand is extended, also while it waits for its next try", async () => {
    const job = defineJob<null>({
      name: "fails",
      retry: { attempts: 5, backoff: { delay: "1h" } },
      run: () => Promise.reject(new Error("later")),
    });
    await using scene = await stage({ jobs: [job] }, (source) => {
      source.extendEveryMs = 10;
    });
    await scene.source.send(newReceived("fails", null));
    await until("it is extended", () => scene.source.extended.length > 3);
  });

  test("options that cannot work are refused", () => {
    const { inbox } = newInbox();
    const weak = { ...inbox, atomic: false } as unknown as Inbox;
    const from = new MemorySource();
    const onDead = (): void => {};
    const job = defineJob<null>({ name: "job", run: () => null });
    const exact = defineJob<null>({ name: "exact", delivery: "effectively-once", run: () => null });
    const far = defineJob<null>({ name: "far" });
    const cases: readonly (readonly [ConsumeOptions, RegExp])[] = [
      [{ jobs: [job], from, inbox }, /one of deadLetter and onDead/],
      [{ jobs: [far], from, inbox, onDead }, /"far" has no handler/],
      [{ jobs: [job, job], from, inbox, onDead }, /defined twice/],
      [{ jobs: [exact], from, inbox: weak, onDead }, /sqliteInbox, postgresInbox or mysqlInbox/],
      [{ jobs: [job], from, inbox, onDead, concurrency: 0 }, /concurrency of consume/],
      [{ jobs: [job], from, inbox, onDead, concurency: 1 } as ConsumeOptions, /unknown option "concurency"/],
    ];
    for (const [options, says] of cases) assert.throws(() => consume(options), says);
  });
});
