import { randomUUID } from "node:crypto";
import { nats, natsSource } from "../../src/transports/nats/index.ts";
import { makeStream, NatsAdmin } from "../../src/transports/nats/test/place.ts";
import { testbed } from "../../testbed/index.ts";
import { RawNats } from "../raw-nats.ts";
import type { RawMessage } from "./broken-messages.ts";
import { type OpenTarget, startConsumer } from "./target.ts";

/** The block of headers, byte for byte: a line break in a value begins another header, and the server does not mind. */
function blockOf({ headers, key }: RawMessage): Buffer {
  const all = key === null ? headers : [...headers, [Buffer.from("escapement-key"), key] as const];
  const lines = all.flatMap(([name, value]) => [
    name,
    Buffer.from(": "),
    value ?? Buffer.alloc(0),
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([Buffer.from("NATS/1.0\r\n"), ...lines, Buffer.from("\r\n")]);
}

export const natsTarget: OpenTarget = {
  skip: async () => (await testbed.nats()).skip,
  async open(handlers) {
    const { url } = await testbed.nats();
    const [subject, dead] = [`fuzz-${randomUUID()}`, `fuzz-dead-${randomUUID()}`];
    const admin = new NatsAdmin(url);
    for (const one of [subject, dead]) await makeStream(admin, one);
    const from = natsSource({ stream: subject, consumer: "fuzz", servers: url });
    const letters = nats({ subject: dead, servers: url });
    const { consumer, ...running } = await startConsumer(handlers, from, letters);
    return {
      ...running,
      async publish(messages) {
        let taken = 0;
        // One that the server does not take may cost the connection.
        for (const message of messages) {
          const answer = await RawNats.request(
            url,
            subject,
            blockOf(message),
            message.body ?? Buffer.alloc(0),
          );
          if (answer !== null && /"stream":/.test(answer) && !/"duplicate":\s*true|"error"/.test(answer))
            taken += 1;
        }
        return taken;
      },
      async [Symbol.asyncDispose]() {
        await consumer.stop();
        await admin.do(async (manager) => {
          for (const one of [subject, dead]) await manager.streams.delete(one);
        });
        await admin.close();
        RawNats.closeAll();
      },
    };
  },
};
