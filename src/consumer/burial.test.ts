import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { defineJob } from "../definition.ts";
import { UnrecoverableError } from "../errors.ts";
import { silentLogger } from "../log.ts";
import type { Message } from "../message/message.ts";
import { acknowledged, ambiguous, refused } from "../message/publish-result.ts";
import type { PublishResult, Route } from "../message/transport.ts";
import { until } from "../testing/transports/scene.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Burial } from "./burial.ts";
import type { DeadMessage } from "./options.ts";
import { newReceived } from "./test/memory-source.ts";
import { stage } from "./test/stage.ts";

/** A place for dead messages that answers as it is told. */
function placeOf(answer: (message: Message) => PublishResult): { route: Route; offered: Message[] } {
  const offered: Message[] = [];
  const publish = async (messages: readonly Message[]): Promise<PublishResult[]> => {
    offered.push(...messages);
    return messages.map(answer);
  };
  const open = async () => ({ publish, close: async () => {} });
  const transport = { kind: "memory", address: "", open };
  return { offered, route: { destination: "graveyard", dispatchTimeoutMs: 1_000, transport } };
}

const tooLarge = refused("too large", { permanent: true });
const size = ({ headers }: Message): number => JSON.stringify(headers).length;

const failing = defineJob<string>({
  name: "work",
  retry: { attempts: 1 },
  run: ({ input }) => {
    if (input !== "good") throw new Error(`${"é ".repeat(500)}`);
  },
});

describe("a dead message that is refused for good where dead messages go", () => {
  test("it is offered once more without what it can do without, and with a short error", async () => {
    const received = newReceived("work", "bad", {
      "x-trace": "t".repeat(500),
      "escapement-schedule": "nightly",
    });
    const original = JSON.stringify(received.headers).length;
    const place = placeOf((message) => (size(message) <= original ? acknowledged : tooLarge));
    await using scene = await stage({ jobs: [failing], deadLetter: place.route });
    await scene.source.send(received);
    await until("it is acknowledged", () => scene.source.acked.length === 1);
    assert.equal(place.offered.length, 2);
    const headers = place.offered[1]?.headers ?? {};
    assert.equal(headers["idempotency-key"], received.headers["idempotency-key"]);
    assert.match(decodeURIComponent(headers["escapement-error"] ?? ""), /^(é ?)+$/);
    assert.deepEqual(
      [headers["escapement-original-x-trace"], headers["escapement-queue"]],
      [undefined, undefined],
    );
    assert.equal(place.offered[1]?.body, received.body);
  });

  const drops = async (policy: "drop" | "keep", many: number) => {
    const errors: unknown[] = [];
    const log = { ...silentLogger, error: (facts: unknown) => void errors.push(facts) };
    const { route } = placeOf(() => tooLarge);
    const options = { onBurialRefused: policy, concurrency: 2, maxInHand: 2, metrics: true } as const;
    const handled: string[] = [];
    const run = ({ input }: { readonly input: string }): void => {
      if (input !== "good") throw new Error("broken");
      handled.push(input);
    };
    const job = defineJob<string>({ name: "work", retry: { attempts: 1 }, run });
    await using scene = await stage({ jobs: [job], deadLetter: route, log, ...options });
    for (let sent = 0; sent < many; sent++)
      await scene.source.send(newReceived("work", "bad", { "escapement-id": `bad-${sent}` }));
    await scene.source.send(newReceived("work", "good", { "escapement-id": "good" }));
    await until("the good one is handled", () => handled.length === 1 && scene.source.acked.length === 1);
    await until("the others are given up", () => scene.consumer.counts.unburied === many);
    const { dead, unburied } = scene.consumer.counts;
    const { acked, abandoned, released } = scene.source;
    const metrics = await scene.consumer.metrics();
    return { dead, unburied, acked, abandoned, released, errors, metrics };
  };

  test("more of them than fit into hand stop nobody: by default they are dropped, loudly", async () => {
    const { dead, unburied, acked, abandoned, errors, metrics } = await drops("drop", 5);
    assert.deepEqual([dead, unburied, abandoned.length], [0, 5, 5]);
    assert.deepEqual(acked, ["good"]);
    assert(JSON.stringify(errors).includes("memory, bad-4"), "the log says where it is");
    assert.match(metrics, /escapement_burials_total\{outcome="dropped"\} 5/);
  });

  test("they are not acknowledged with `keep`, and hold no slot either", async () => {
    const { unburied, acked, abandoned, released, metrics } = await drops("keep", 5);
    assert.deepEqual([unburied, acked, abandoned, released], [5, ["good"], [], []]);
    assert.match(metrics, /escapement_burials_total\{outcome="kept"\} 5/);
  });

  test("an UnrecoverableError of onDead is such a refusal", async () => {
    let calls = 0;
    const onDead = () => {
      calls += 1;
      throw new UnrecoverableError("not this one");
    };
    await using scene = await stage({ jobs: [failing], onDead });
    await scene.source.send(newReceived("work", "bad"));
    await until("it is dropped", () => scene.source.abandoned.length === 1);
    assert.equal(calls, 1);
  });
});

describe("how long a burial goes on", () => {
  const dead = (id: string): DeadMessage => ({
    message: newReceived("work", null, { "escapement-id": id }),
    facts: null,
    error: new Error("broken"),
    tries: 1,
    position: id,
  });
  const bury = async (
    answer: (message: Message) => PublishResult,
    others: (burial: Burial) => Promise<unknown> = async () => {},
  ) => {
    const clock = new VirtualClock();
    const { route } = placeOf(answer);
    const burial = new Burial({ deadLetter: route, onDead: null, clock, log: silentLogger });
    const stop = new AbortController();
    let end: string | null = null;
    const buried = burial.bury(dead("bad"), stop.signal).then((how) => {
      end = how;
    });
    await others(burial);
    await clock.advance(3_600_000);
    const after = end;
    stop.abort();
    await buried;
    return after;
  };

  test("a place that is away is waited for", async () => {
    assert.equal(await bury(() => refused("down")), null);
  });

  test("what nobody can say anything about is given up after a while", async () => {
    assert.equal(await bury(() => ambiguous("no answer")), "refused");
  });

  test("a place that takes others is not away", async () => {
    const isBad = (message: Message): boolean => message.headers["escapement-id"] === "bad";
    const answer = (message: Message): PublishResult => (isBad(message) ? refused("not now") : acknowledged);
    const others = (burial: Burial): Promise<unknown> =>
      burial.bury(dead("good"), new AbortController().signal);
    assert.equal(await bury(answer, others), "refused");
  });
});

test("headers of strangers mean nothing where a dead message goes", async () => {
  const place = placeOf(() => acknowledged);
  await using scene = await stage({ jobs: [], deadLetter: place.route });
  const hostile = {
    host: "169.254.169.254",
    authorization: "Bearer stolen",
    "transfer-encoding": "chunked",
    "content-length": "5",
    "nats-msg-id": "somebody-elses",
    "nats-rollup": "all",
    "nats-expected-stream": "other",
    "webhook-signature": "v1,x",
    "escapement-signature": "v1,x",
    "escapement-error": "forged",
    "escapement-tries": "0",
    "escapement-key": "other",
    "escapement-dedupe-id": "other",
    "escapement-original-seen": "before",
    "a name with spaces": "x",
  };
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`x-${n}`, "v".repeat(200)]));
  await scene.source.send(newReceived("unknown", null, { ...hostile, ...many }));
  await until("it is put away", () => place.offered.length === 1);
  const headers = place.offered[0]?.headers ?? {};
  const known =
    /^(content-type|idempotency-key|escapement-(namespace|id|name|queue|delivery|fire-at|attempt|token|redrives|error|tries|headers-left-out|original-.+))$/;
  assert.deepEqual(
    Object.keys(headers).filter((name) => !known.test(name)),
    [],
  );
  assert.equal(headers["escapement-original-host"], "169.254.169.254");
  assert.equal(headers["escapement-original-seen"], "before");
  assert.match(headers["escapement-error"] ?? "", /no%20definition/);
  assert.equal(headers["escapement-tries"], "0");
  assert(JSON.stringify(headers).length < 8_000, "and they are bounded");
  assert(Number(headers["escapement-headers-left-out"]) > 20);
});
