import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { defineJob } from "../definition.ts";
import type { Inbox } from "../inbox/inbox.ts";
import { until } from "../testing/transports/scene.ts";
import { type ConsumeOptions, consume } from "./index.ts";
import { MemorySource, newReceived } from "./test/memory-source.ts";
import { newGraveyard, newInbox, stage } from "./test/stage.ts";

describe("how a consumer goes about it", () => {
  test("messages of one key are handled one after the other, also while one waits for its next try; others go on", async () => {
    const order: string[] = [];
    const job = defineJob<string>({
      name: "ordered",
      retry: { attempts: 1_000, backoff: { type: "fixed", delay: 10 } },
      run: ({ input }) => {
        if (input === "a1" && !order.includes("b1")) throw new Error("not yet");
        order.push(input);
      },
    });
    await using scene = await stage({ jobs: [job] });
    for (const input of ["a1", "a2", "b1", "a3"])
      await scene.source.send(newReceived("ordered", input, { key: input[0] ?? "" }));
    await until("all are acknowledged", () => scene.source.acked.length === 4);
    assert.deepEqual(order, ["b1", "a1", "a2", "a3"]);
  });

  test("no more handlers at a time than allowed, and no more messages in hand", async () => {
    let running = 0;
    let most = 0;
    const full = Promise.withResolvers<void>();
    const job = defineJob<null>({
      name: "busy",
      run: async () => {
        running += 1;
        most = Math.max(most, running);
        if (running === 3) full.resolve();
        await full.promise;
        await new Promise((resolve) => setTimeout(resolve, 5));
        running -= 1;
      },
    });
    await using scene = await stage({ jobs: [job], concurrency: 3, maxInHand: 5 });
    for (let index = 0; index < 30; index++) await scene.source.send(newReceived("busy", null));
    await until("all are acknowledged", () => scene.source.acked.length === 30);
    assert.equal(most, 3);
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
    const graveyard = newGraveyard();
    graveyard.isUp = false;
    await using scene = await stage({ jobs: [], deadLetter: graveyard.route });
    await scene.source.send(newReceived("unheard-of", { a: 1 }, { key: "k" }));
    await until("it was refused more than once", () => graveyard.refusals > 1);
    assert.deepEqual(scene.source.acked, []);
    graveyard.isUp = true;
    await until("it is acknowledged", () => scene.source.acked.length === 1);
    const [message] = graveyard.published;
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
    const stopped = scene.consumer.stop({ timeout: "1m" });
    await until("what waits is given back", () => scene.source.released.length === 1);
    gate.resolve();
    await stopped;
    assert.deepEqual(scene.source.acked.toSorted(), ["runs", "runs-too"]);
    assert.deepEqual(scene.source.released.toSorted(), ["fails", "waits"]);
  });

  test("a handler that does not finish in time is told to stop, and its message is given back", async () => {
    const started = Promise.withResolvers<void>();
    const job = defineJob<null>({
      name: "endless",
      run: async ({ signal }) => {
        started.resolve();
        await new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason)),
        );
      },
    });
    await using scene = await stage({ jobs: [job] });
    await scene.source.send(newReceived("endless", null, { "escapement-id": "endless" }));
    await started.promise;
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
      [{ jobs: [job], from, inbox }, /either deadLetter or onDead/],
      [{ jobs: [far], from, inbox, onDead }, /"far" has no handler/],
      [{ jobs: [job, job], from, inbox, onDead }, /defined twice/],
      [{ jobs: [exact], from, inbox: weak, onDead }, /sqliteInbox, postgresInbox or mysqlInbox/],
      [{ jobs: [job], from, inbox, onDead, concurrency: 0 }, /concurrency of consume/],
      [{ jobs: [job], from, inbox, onDead, concurency: 1 } as ConsumeOptions, /unknown option "concurency"/],
    ];
    for (const [options, says] of cases) assert.throws(() => consume(options), says);
  });
});
