import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { crc32 } from "node:zlib";
import { compatibilityPartitioner } from "@platformatic/kafka";
import { readFacts } from "../src/message/facts.ts";
import { encodeHeader, encodeMessage } from "../src/message/message.ts";
import type { ClaimedJob } from "../src/store/claims.ts";
import { signMessage, signWebhook } from "../src/transports/http/index.ts";
import { decodeEntry, encodeEntry } from "../src/transports/redis-streams/entry.ts";
import { streamOf } from "../src/transports/redis-streams/stream-name.ts";

const page = readFileSync(join(import.meta.dirname, "../docs/WIRE.md"), "utf8");
const vectors = JSON.parse(/```json\n([\s\S]+?)\n```/.exec(page)?.[1] ?? "{}");

describe("the test vectors of docs/WIRE.md", () => {
  for (const vector of vectors.messages) {
    const { namespace, key, fireAt, publishedAt: at, trace, ...rest } = vector.job;
    const job = { ...rest, fireAt: new Date(fireAt) } as ClaimedJob;
    const publishedAt = at === null ? null : new Date(at);

    test(`the message of ${rest.id} [B4]`, () => {
      const { headers, body, dedupeId } = encodeMessage(namespace, job, {
        destination: "payments",
        key,
        publishedAt,
        trace,
      });
      assert.deepEqual(
        { headers, body, dedupeId },
        {
          headers: vector.headers,
          body: vector.body,
          dedupeId: vector.dedupeId,
        },
      );
    });

    test(`what its headers tell of ${rest.id}`, () => {
      const { input: _input, ...facts } = job;
      const idempotencyKey = vector.headers["idempotency-key"];
      const told = { namespace, ...facts, idempotencyKey, publishedAt, ...(trace && { trace }) };
      assert.deepEqual(readFacts(vector.headers), told);
    });

    test(`the entry of ${rest.id} in a Redis Stream, there and back`, () => {
      const message = encodeMessage(namespace, job, { destination: "payments", key, publishedAt, trace });
      assert.deepEqual(decodeEntry(encodeEntry(message)), {
        key,
        headers: vector.headers,
        body: vector.body,
      });
    });
  }

  test("encoded headers", () => {
    for (const [text, encoded] of Object.entries<string>(vectors.encodedHeaders)) {
      assert.equal(encodeHeader(text), encoded);
      assert.equal(decodeURIComponent(encoded), text);
    }
  });

  test("signatures", () => {
    for (const { secret, id, timestamp, body, signature } of vectors.signatures) {
      const at = new Date(Number(timestamp) * 1_000);
      assert.equal(signWebhook({ id, body, secret, at })["webhook-signature"], signature);
    }
  });

  test("signatures over the headers, with the key among them as HTTP carries it", () => {
    for (const { secret, message, timestamp, headersSha256, signature } of vectors.factsSignatures) {
      const { job, headers, body } = vectors.messages.find((one: typeof message) => one.job.id === message);
      const facts = { ...headers, "escapement-key": encodeHeader(job.key) };
      const names = Object.keys(facts).filter((name) => name !== "content-type");
      const lines = names.map((name) => `${name}:${facts[name]}\n`).sort();
      assert.equal(hash("sha256", lines.join("")), headersSha256);
      const at = new Date(Number(timestamp) * 1_000);
      assert.equal(signMessage({ headers: facts, body, secret, at })["escapement-signature"], signature);
    }
  });

  test("where a key lies", () => {
    for (const { key, shards, stream } of vectors.redisShards)
      assert.equal(streamOf("payments", crc32(key) % shards, shards), stream);
    for (const { key, partitions, partition } of vectors.kafkaPartitions) {
      const hash = compatibilityPartitioner({ topic: "payments" }, Buffer.from(key));
      assert.equal(hash % partitions, partition);
    }
  });
});

test("headers that cannot be read are refused in plain words", () => {
  const [{ headers }] = vectors.messages;
  const without = (name: string) =>
    Object.fromEntries(Object.entries(headers).filter(([one]) => one !== name));
  const cases: readonly (readonly [object, RegExp])[] = [
    [without("idempotency-key"), /idempotency-key to be present, got nothing/],
    [{ ...headers, "escapement-name": "%E4" }, /escapement-name to be percent-encoded/],
    [{ ...headers, "escapement-fire-at": "soon" }, /escapement-fire-at to be a time/],
    [{ ...headers, "escapement-attempt": "-1" }, /escapement-attempt to be a whole number/],
    [{ ...headers, "escapement-delivery": "twice" }, /escapement-delivery to be one of/],
  ];
  for (const [given, says] of cases)
    assert.throws(() => readFacts(given as Record<string, string>), {
      code: "invalid-message",
      message: says,
    });
});
