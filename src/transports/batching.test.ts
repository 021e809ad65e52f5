import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../message/message.ts";
import type { PublishResult, Transport } from "../message/transport.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { type Batching, BatchingTransport } from "./batching.ts";

function message(key: string): Message {
  return { destination: "topic", key, dedupeId: key, headers: {}, body: "null" };
}

/** Refuses what is called "no", and remembers its calls. */
function scene(publish?: Transport["publish"], batching: Partial<Batching> = {}) {
  const clock = new VirtualClock();
  const calls: { keys: string[]; timeoutMs: number }[] = [];
  const answer = ({ key }: Message): PublishResult =>
    key === "no" ? { kind: "refused", error: new Error(key), permanent: false } : { kind: "acknowledged" };
  const transport = new BatchingTransport(
    {
      publish: async (messages, options) => {
        calls.push({ keys: messages.map(({ key }) => key), ...options });
        return publish === undefined ? messages.map(answer) : publish(messages, options);
      },
      close: async () => {},
    },
    clock,
    { maxMessages: 200, maxUnderWay: Number.POSITIVE_INFINITY, ...batching },
  );
  const kinds = async (keys: string[], timeoutMs = 100): Promise<string[]> =>
    (await transport.publish(keys.map(message), { timeoutMs })).map(({ kind }) => kind);
  return { clock, calls, kinds };
}

test("what is published in one turn goes as one batch, and each call gets its own results", async () => {
  const { clock, calls, kinds } = scene();
  const both = Promise.all([kinds(["a", "no"], 100), kinds(["b"], 95)]);
  await clock.advance(0);
  assert.deepEqual(await both, [["acknowledged", "refused"], ["acknowledged"]]);
  assert.deepEqual(calls, [{ keys: ["a", "no", "b"], timeoutMs: 95 }]);
});

test("a call with much less time goes separately, so no other call is cut short for it", async () => {
  const { clock, calls, kinds } = scene();
  const all = Promise.all([kinds(["a"], 1_000), kinds(["b"], 100), kinds(["c"], 100)]);
  await clock.advance(0);
  await all;
  assert.deepEqual(calls, [
    { keys: ["a"], timeoutMs: 1_000 },
    { keys: ["b", "c"], timeoutMs: 100 },
  ]);
});

test("a batch is bounded, and no call is split", async () => {
  const { clock, calls, kinds } = scene();
  const keys = (many: number) => Array.from({ length: many }, (_, n) => `${n}`);
  const all = Promise.all([kinds(keys(150)), kinds(keys(40)), kinds(keys(20)), kinds(keys(300))]);
  await clock.advance(0);
  await all;
  assert.deepEqual(
    calls.map((call) => call.keys.length),
    [190, 20, 300],
  );
});

test("a transport that throws has thrown for each call", async () => {
  const { clock, kinds } = scene(() => Promise.reject(new Error("broken")));
  const all = Promise.allSettled([kinds(["a"]), kinds(["b"])]);
  await clock.advance(0);
  assert.deepEqual(
    (await all).map(({ status }) => status),
    ["rejected", "rejected"],
  );
});

test("while as many batches as may be are under way, calls wait and share the next", async () => {
  const answers: (() => void)[] = [];
  const { clock, calls, kinds } = scene(
    (messages) =>
      new Promise((resolve) => answers.push(() => resolve(messages.map(() => ({ kind: "acknowledged" }))))),
    { maxUnderWay: 1 },
  );
  const first = kinds(["a"], 1_000);
  await clock.advance(0);
  const later = [kinds(["b"], 1_000), kinds(["c"], 10)];
  await clock.advance(5);
  later.push(kinds(["d"], 1_000), kinds(["e"], 1_000));
  await clock.advance(20);
  assert.deepEqual(
    calls.map(({ keys }) => keys),
    [["a"]],
  );
  answers.shift()?.();
  assert.deepEqual(await first, ["acknowledged"]);
  await clock.advance(0);
  assert.deepEqual(calls.slice(1), [{ keys: ["b", "d", "e"], timeoutMs: 975 }]);
  answers.shift()?.();
  assert.deepEqual(await Promise.all(later), [
    ["acknowledged"],
    ["refused"],
    ["acknowledged"],
    ["acknowledged"],
  ]);
});
