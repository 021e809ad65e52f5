import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { systemClock } from "../src/clock.ts";
import { silentLogger } from "../src/log.ts";
import { parseKafka } from "../src/transports/kafka/address.ts";
import { kafka, kafkaSource } from "../src/transports/kafka/index.ts";
import { parseNats } from "../src/transports/nats/address.ts";
import { nats, natsSource } from "../src/transports/nats/index.ts";
import { redisStreams, redisStreamsSource } from "../src/transports/redis-streams/index.ts";

const context = { clock: systemClock, log: silentLogger };

describe("where the brokers are", () => {
  test("Kafka: a URL with a login, TLS and a mechanism, or hosts", () => {
    assert.deepEqual(parseKafka("kafka+ssl://me:s%40cret@a:1,b:2?mechanism=SCRAM-SHA-512"), {
      brokers: ["a:1", "b:2"],
      tls: true,
      sasl: { mechanism: "SCRAM-SHA-512", username: "me", password: "s@cret" },
    });
    assert.deepEqual(parseKafka(["a", "b:2"]), { brokers: ["a:9092", "b:2"], tls: false, sasl: null });
  });

  test("NATS: a URL with a login or a token, TLS, or hosts", () => {
    const none = { user: null, pass: null, token: null, tls: false };
    assert.deepEqual(parseNats("nats://me:s%40cret@a:1,b:2"), {
      ...none,
      servers: ["a:1", "b:2"],
      user: "me",
      pass: "s@cret",
    });
    assert.deepEqual(parseNats("tls://token@a:1"), { ...none, servers: ["a:1"], token: "token", tls: true });
    assert.deepEqual(parseNats(["a:1", "b:2"]), { ...none, servers: ["a:1", "b:2"] });
  });

  test("a string that is not an address is refused without repeating it", () => {
    for (const parse of [parseKafka, parseNats]) {
      assert.throws(
        () => parse("amqp://user:hidden@host/"),
        (error: Error) => /expected/.test(error.message) && !/hidden/.test(error.message),
      );
    }
  });

  test("the environment gives what the options do not, and is read when the transport is opened", async () => {
    const cases = [
      ["ESCAPEMENT_KAFKA", kafka({ topic: "t" }), "kafka://a:1"],
      ["ESCAPEMENT_NATS", nats({ subject: "s" }), "nats://a:1"],
      ["ESCAPEMENT_REDIS", redisStreams({ stream: "s" }), "redis://a:1"],
    ] as const;
    for (const [variable, route, url] of cases) {
      delete process.env[variable];
      await assert.rejects(async () => route.transport.open(context), new RegExp(`set ${variable}`));
      process.env[variable] = url;
      assert.match(route.transport.address, /a:1|"a"/);
      const transport = await route.transport.open(context);
      await transport.close();
      delete process.env[variable];
    }
  });

  test("routes of one broker share a connection, others do not", () => {
    const brokers = "kafka://a:1";
    const address = kafka({ topic: "t", brokers }).transport.address;
    assert.equal(kafka({ topic: "u", brokers, dispatchTimeout: "10s" }).transport.address, address);
    assert.notEqual(kafka({ topic: "t", brokers: "kafka://b:1" }).transport.address, address);
    assert.notEqual(kafka({ topic: "t", brokers, compression: "gzip" }).transport.address, address);
  });

  test("the dispatch timeout is 300 s, unless the route says another [D6]", () => {
    assert.equal(kafka({ topic: "t" }).dispatchTimeoutMs, 300_000);
    assert.equal(nats({ subject: "s" }).dispatchTimeoutMs, 300_000);
    assert.equal(redisStreams({ stream: "s" }).dispatchTimeoutMs, 300_000);
    assert.equal(nats({ subject: "s", dispatchTimeout: "10s" }).dispatchTimeoutMs, 10_000);
  });
});

test("options that cannot work are refused", () => {
  const cases: readonly (readonly [() => unknown, RegExp])[] = [
    [() => kafka({ topic: "no spaces" }), /kafka's topic/],
    [() => kafka({ topic: "t", compresion: "gzip" } as never), /unknown option "compresion" of kafka/],
    [() => kafka({ topic: "t", compression: "brotli" as never }), /kafka's compression/],
    [() => kafka({ topic: "t", maxBatchBytes: 10 }), /kafka's maxBatchBytes/],
    [() => kafkaSource({ topic: "t", group: "" }), /kafkaSource's group/],
    [() => nats({ subject: "a.*" }), /without wildcards/],
    [() => nats({ subject: "" }), /nats' subject/],
    [() => natsSource({ stream: "a.b", consumer: "c" }), /natsSource's stream/],
    [() => redisStreams({ stream: "" }), /redisStreams' stream/],
    [() => redisStreams({ stream: "s", shards: 0 }), /redisStreams' shards/],
    [() => redisStreams({ stream: "s", maxLength: 0 }), /redisStreams' maxLength/],
    [() => redisStreamsSource({ stream: "s", group: "" }), /redisStreamsSource's group/],
    [() => nats({ subject: "s", dispatchTimeout: "soon" as never }), /nats' dispatchTimeout/],
  ];
  for (const [make, says] of cases) assert.throws(make, says);
});
