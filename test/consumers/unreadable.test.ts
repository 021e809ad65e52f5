import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { Producer } from "@platformatic/kafka";
import { systemClock } from "../../src/clock.ts";
import { consume, type DeadMessage } from "../../src/consumer/index.ts";
import { newReceived } from "../../src/consumer/test/memory-source.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { Source } from "../../src/message/source.ts";
import type { Route } from "../../src/message/transport.ts";
import { sqliteInbox } from "../../src/stores/sqlite/index.ts";
import { until } from "../../src/testing/transports/scene.ts";
import { parseKafka } from "../../src/transports/kafka/address.ts";
import { baseOptions } from "../../src/transports/kafka/client.ts";
import { kafka, kafkaSource } from "../../src/transports/kafka/index.ts";
import { makeTopic } from "../../src/transports/kafka/test/place.ts";
import { nats, natsSource } from "../../src/transports/nats/index.ts";
import { makeStream, NatsAdmin } from "../../src/transports/nats/test/place.ts";
import { testbed } from "../../testbed/index.ts";
import { RawNats } from "../raw-nats.ts";
import { scratchFolder } from "../scratch.ts";

const [natsServer, kafkaServer] = [await testbed.nats(), await testbed.kafka()];
after(() => RawNats.closeAll());

/** A consumer of everything, with what it handled and what it put away. */
async function consumeAll(from: Source) {
  const handled: number[] = [];
  const dead: DeadMessage[] = [];
  const warnings: unknown[] = [];
  const inbox = createInbox({ store: sqliteInbox(join(scratchFolder("unreadable"), "inbox.db")) });
  const job = defineJob<number>({ name: "work", run: ({ input }) => void handled.push(input) });
  const log = { ...silentLogger, warn: (facts: unknown) => void warnings.push(facts) };
  const consumer = consume({ jobs: [job], from, inbox, onDead: (one) => void dead.push(one), log });
  await consumer.start();
  const dispose = async (): Promise<void> => {
    await consumer.stop();
    await inbox.close();
  };
  return { handled, dead, warnings, [Symbol.asyncDispose]: dispose };
}

async function publish(route: Route, input: number): Promise<void> {
  const transport = await route.transport.open({ clock: systemClock, log: silentLogger });
  const message = { ...newReceived("work", input), destination: route.destination, dedupeId: randomUUID() };
  const [result] = await transport.publish([message], { timeoutMs: 30_000 });
  assert.equal(result?.kind, "acknowledged");
  await transport.close();
}

describe("a NATS message that cannot be decoded is dead, and the others are handled", {
  skip: natsServer.skip,
}, () => {
  const { url } = natsServer;
  const cases = {
    "a header name with a space": ["not a name: x", '"kept"'],
    "a header name outside of ASCII": ["nämé: x", '"kept"'],
    "a body that is not UTF-8": ["escapement-id: x", Buffer.from([0x22, 0xff, 0xfe, 0x22])],
  } as const;
  for (const [what, [header, body]] of Object.entries(cases)) {
    test(what, async () => {
      const subject = `unreadable-${randomUUID()}`;
      await using admin = new NatsAdmin(url);
      await makeStream(admin, subject);
      const route = nats({ subject, servers: url });
      await publish(route, 1);
      const block = Buffer.from(`NATS/1.0\r\n${header}\r\n\r\n`);
      const answer = await RawNats.request(url, subject, block, Buffer.from(body));
      assert.match(answer ?? "", /"stream"/);
      await publish(route, 2);
      await using scene = await consumeAll(natsSource({ stream: subject, consumer: "c", servers: url }));
      await until("the good ones are handled", () => scene.handled.length === 2);
      await until("the other one is dead", () => scene.dead.length === 1);
      assert.match(String(scene.dead[0]?.error), /header|UTF-8/);
      const { body: kept = "", headers = {} } = scene.dead[0]?.message ?? {};
      const isEncoded = headers["escapement-body-encoding"] === "base64";
      assert.deepEqual(Buffer.from(kept, isEncoded ? "base64" : "utf8"), Buffer.from(body));
      assert.deepEqual(scene.warnings, []);
    });
  }
});

describe("a Kafka record that is unusual or cannot be decoded holds up no other", {
  skip: kafkaServer.skip,
}, () => {
  const { url } = kafkaServer;
  const name = Buffer.from("x-odd");
  const cases = {
    "a header without a value": { headers: new Map([[name, null]]), value: Buffer.from("1") },
    "no value, no key, no headers": { value: null },
    "a body that is not UTF-8": { value: Buffer.from([0x22, 0xff, 0xfe, 0x22]) },
    "a header that is not UTF-8": {
      headers: new Map([[Buffer.from([0xff]), Buffer.from([0xff, 0x00])]]),
      value: Buffer.from("1"),
    },
  };
  for (const [what, record] of Object.entries(cases)) {
    test(what, async () => {
      const topic = `unreadable-${randomUUID()}`;
      await makeTopic(url, topic, 1);
      const route = kafka({ topic, brokers: url });
      await publish(route, 1);
      const producer = new Producer({ ...baseOptions(parseKafka(url)) });
      await producer.send({ messages: [{ topic, ...record } as never] });
      await producer.close();
      await publish(route, 2);
      await using scene = await consumeAll(kafkaSource({ topic, group: topic, brokers: url }));
      await until("the good ones are handled", () => scene.handled.length === 2);
      await until("the other one is dead", () => scene.dead.length === 1);
      assert.deepEqual(scene.warnings, []);
    });
  }
});
