import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { defineJob } from "../definition.ts";
import { createInbox } from "../inbox/inbox.ts";
import type { Source } from "../message/source.ts";
import type { Route } from "../message/transport.ts";
import type { InboxStore } from "../store/inbox.ts";
import { sqliteInbox } from "../stores/sqlite/index.ts";
import { http } from "../transports/http/route.ts";
import { secret } from "../transports/http/test/place.ts";
import { kafka, kafkaSource } from "../transports/kafka/index.ts";
import { nats, natsSource } from "../transports/nats/index.ts";
import { redisStreams, redisStreamsSource } from "../transports/redis-streams/index.ts";
import { type ConsumeOptions, consume, type HttpEndpointOptions, httpEndpoint } from "./index.ts";
import { MemorySource } from "./test/memory-source.ts";
import { newInbox } from "./test/stage.ts";

const { inbox, path } = newInbox();
const job = defineJob<null>({ name: "job", run: () => null });
const url = "redis://:hidden@a:1";
const from = redisStreamsSource({ stream: "s", group: "g", url });
const deadLetter = redisStreams({ stream: "dead", url });

function refusal(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    assert.equal((error as { code?: string }).code, "invalid-option");
    const { message } = error as Error;
    assert.doesNotMatch(message, /hidden/);
    return message;
  }
  assert.fail("it was taken");
}

const consuming = (options: object) =>
  consume({ jobs: [job], from, inbox, deadLetter, ...options } as ConsumeOptions);
const receiving = (options: object) =>
  httpEndpoint({ jobs: [job], inbox, secret, ...options } as HttpEndpointOptions);

/** An inbox of another copy of the package: the same methods, and another class. */
const foreign = {
  atomic: true,
  retentionMs: 1,
  hold: inbox.hold.bind(inbox),
  handle: inbox.handle.bind(inbox),
};

test("what fits is taken", () => {
  consuming({});
  consuming({ inbox: foreign, from: new MemorySource() });
  receiving({ inbox: foreign });
});

describe("an inbox that is none is refused at once", () => {
  const cases: readonly (readonly [inbox: unknown, says: RegExp])[] = [
    [undefined, /got undefined$/],
    [null, /got null$/],
    [sqliteInbox({ path }), /got the store without createInbox around it$/],
    ["app.db", /got a string$/],
    [{ atomic: true }, /got an object$/],
  ];
  for (const [given, says] of cases) {
    test(String(says), () => {
      const inConsume = refusal(() => consuming({ inbox: given }));
      assert.match(
        inConsume,
        /inbox of consume to be what createInbox\(\{ store: sqliteInbox\(…\) \}\) returns/,
      );
      assert.match(inConsume, says);
      const inEndpoint = refusal(() => receiving({ inbox: given }));
      assert.match(inEndpoint, /inbox of httpEndpoint to be what createInbox/);
      assert.match(inEndpoint, says);
    });
  }

  test("one that cannot commit with the effect is refused for a job that needs it", () => {
    const exact = defineJob<null>({ name: "exact", delivery: "effectively-once", run: () => null });
    const weak = createInbox({ store: { atomic: false } as InboxStore });
    assert.throws(() => consuming({ jobs: [exact], inbox: weak }), { code: "delivery-unsupported" });
    assert.match(
      refusal(() => consuming({ jobs: [exact], inbox: undefined })),
      /createInbox/,
    );
  });
});

describe("other options of a consumer that cannot be meant", () => {
  const cases: readonly (readonly [options: object, says: RegExp])[] = [
    [{ from: undefined }, /from of consume .*redisStreamsSource\(…\) returns, got undefined$/],
    [{ from: "redis://:hidden@a" }, /from of consume .*, got a string$/],
    [{ from: {} }, /from of consume .*, got an object$/],
    [{ from: deadLetter }, /from of consume .*, got a route.*; write redisStreamsSource\(/],
    [{ from: kafka({ topic: "t" }) }, /from of consume .*, got a route.*; write kafkaSource\(/],
    [{ from: nats({ subject: "s" }) }, /from of consume .*, got a route.*; write natsSource\(/],
    [{ from: http({ url: "https://host/", secret }) }, /from of consume .*; write httpEndpoint\(/],
    [{ deadLetter: null }, /deadLetter of consume .*, got null$/],
    [{ deadLetter: "dead" }, /deadLetter of consume .*, got a string$/],
    [{ deadLetter: from }, /deadLetter of consume .*, got a source.*; write redisStreams\(/],
    [{ deadLetter: new MemorySource() }, /deadLetter of consume .*; write the route of its broker$/],
    [{ deadLetter: { ...deadLetter, dispatchTimeoutMs: 0 } }, /deadLetter of consume .*, got an object$/],
    [{ deadLetter: undefined, onDead: null }, /onDead of consume to be a function .*, got null$/],
    [{ deadLetter: undefined, onDead: deadLetter }, /onDead of consume to be a function .*, got an object$/],
    [{ jobs: undefined }, /jobs of consume to be a list .*, got undefined$/],
    [{ jobs: job }, /jobs of consume to be a list .*\[payment\], got an object$/],
    [{ jobs: [job, null] }, /jobs of consume to be a list .*, got a list with null in it$/],
    [{ jobs: ["job"] }, /jobs of consume to be a list .*, got a list with a string in it$/],
    [{ jobs: [{ name: "job", run: () => null }] }, /jobs of consume .*, got a list with an object in it$/],
    [{ concurrency: null }, /concurrency of consume to be a whole number .*, got null$/],
    [{ maxInHand: null }, /maxInHand of consume to be a whole number .*, got null$/],
    [{ attempts: null }, /attempts of consume to be a whole number .*, got null$/],
    [{ metrics: null }, /metrics to be an object, got null$/],
    [{ log: null }, /log of consume to be a logger .*, got null without debug$/],
    [{ log: { debug() {}, info() {} } }, /log of consume to be a logger .*, got an object without warn$/],
  ];
  for (const [options, says] of cases) {
    test(String(says), () =>
      assert.match(
        refusal(() => consuming(options)),
        says,
      ),
    );
  }
});

describe("a dead-letter destination that is what is consumed", () => {
  const kafkaFrom = (brokers?: string) =>
    kafkaSource({ topic: "t", group: "g", ...(brokers ? { brokers } : {}) });
  const natsFrom = (subject: string) => natsSource({ stream: "S", consumer: "c", subject, servers: "a,b" });
  const redisFrom = (options: object) => redisStreamsSource({ stream: "s", group: "g", url, ...options });
  const toRedis = (options: object) => redisStreams({ stream: "s", url, ...options });
  const cases: readonly (readonly [what: string, from: Source, deadLetter: Route, isSame: boolean])[] = [
    ["the topic", kafkaFrom("a:1,b:1"), kafka({ topic: "t", brokers: "B:1,c:1" }), true],
    ["the topic, by an environment to come", kafkaFrom(), kafka({ topic: "t" }), true],
    ["another topic", kafkaFrom("a:1"), kafka({ topic: "u", brokers: "a:1" }), false],
    ["a topic of the same name elsewhere", kafkaFrom("a:1"), kafka({ topic: "t", brokers: "c:1" }), false],
    ["another kind of place", kafkaFrom("a:1"), nats({ subject: "t", servers: "a:1" }), false],
    ["the subject", natsFrom("s.dead"), nats({ subject: "s.dead", servers: "b:4222" }), true],
    ["one of all subjects", natsFrom("s.>"), nats({ subject: "s.dead.of.all", servers: "a" }), true],
    ["one of many subjects", natsFrom("s.*"), nats({ subject: "s.dead", servers: "a" }), true],
    ["none of many subjects", natsFrom("s.*"), nats({ subject: "s.dead.too", servers: "a" }), false],
    ["above all subjects", natsFrom("s.>"), nats({ subject: "s", servers: "a" }), false],
    ["a subject elsewhere", natsFrom("s.>"), nats({ subject: "s.dead", servers: "c" }), false],
    ["the stream", redisFrom({}), toRedis({ maxLength: 5 }), true],
    ["the stream, by another user", redisFrom({}), toRedis({ url: "redis://me:hidden@A:1/0" }), true],
    ["all shards", redisFrom({ shards: 3 }), toRedis({ shards: 3 }), true],
    ["one of the shards", redisFrom({ shards: 3 }), toRedis({ stream: "s:{1}" }), true],
    ["beside the shards", redisFrom({ shards: 3 }), toRedis({}), false],
    ["another stream", redisFrom({}), toRedis({ stream: "dead" }), false],
    ["another database", redisFrom({}), toRedis({ url: "redis://a:1/1" }), false],
    ["another server", redisFrom({}), toRedis({ url: "redis://b:1" }), false],
  ];
  for (const [what, source, route, isSame] of cases) {
    test(`${what}: ${isSame ? "refused" : "taken"}`, () => {
      const make = () => consuming({ from: source, deadLetter: route });
      if (!isSame) return void make();
      const says =
        /deadLetter of consume to be a different place from what is consumed, got \S+ ".*" for both/;
      assert.match(refusal(make), says);
    });
  }
});
