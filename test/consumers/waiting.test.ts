import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { describe, test } from "node:test";
import { until } from "../../src/testing/transports/scene.ts";
import { scratchFolder } from "../scratch.ts";

const module = (path: string): string => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href);

/** Nobody listens at the discard port of the loopback. */
const sources = {
  kafka: `kafkaSource({ brokers: "127.0.0.1:9", topic: "t", group: "g" })`,
  nats: `natsSource({ servers: "127.0.0.1:9", stream: "s", consumer: "d" })`,
  "redis-streams": `redisStreamsSource({ url: "redis://127.0.0.1:9", stream: "s", group: "g" })`,
} as const;

describe("a process that only consumes waits for a broker that is away", () => {
  for (const [kind, source] of Object.entries(sources)) {
    test(kind, async () => {
      const program = `
        import * as transport from ${module(`transports/${kind}/index.ts`)};
        import { consume } from ${module("consumer/index.ts")};
        import { createInbox } from ${module("inbox/index.ts")};
        import { sqliteInbox } from ${module("stores/sqlite/index.ts")};
        const log = { debug() {}, info() {}, warn: () => console.log("waits"), error() {} };
        const inbox = createInbox({ store: sqliteInbox("inbox.db") });
        const from = transport.${source};
        const consumer = consume({ jobs: [], inbox, from, onDead() {}, log });
        await consumer.start();
        process.once("SIGTERM", () => consumer.stop().then(() => inbox.close()));`;
      const args = ["--input-type=module-typescript", "-e", program];
      const child = spawn(process.execPath, args, {
        cwd: scratchFolder("waiting"),
        stdio: ["ignore", "pipe", "inherit"],
      });
      let said = "";
      child.stdout.on("data", (data) => {
        said += data;
      });
      const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null;
      try {
        await until("it tells that it waits", () => said.includes("waits") || isOver());
        // Whatever kept it alive by chance, the attempt to connect first of all, has ended many times over.
        await new Promise((resolve) => setTimeout(resolve, 2_000));
        assert.equal(isOver(), false, "it has ended by itself");
        child.kill("SIGTERM");
        await until("it ends in good order", isOver);
        assert.equal(child.exitCode, 0);
      } finally {
        child.kill("SIGKILL");
      }
    });
  }
});

test("a process ends after its consumer has stopped, also when a handler never does", async () => {
  const program = `
    import { MemorySource, newReceived } from ${module("consumer/test/memory-source.ts")};
    import { consume } from ${module("consumer/index.ts")};
    import { createInbox } from ${module("inbox/index.ts")};
    import { defineJob } from ${module("index.ts")};
    import { sqliteInbox } from ${module("stores/sqlite/index.ts")};
    const started = Promise.withResolvers();
    const job = defineJob({ name: "endless", run: () => { started.resolve(); return new Promise(() => {}); } });
    const inbox = createInbox({ store: sqliteInbox("inbox.db") });
    const from = new MemorySource();
    const consumer = consume({ jobs: [job], inbox, from, onDead() {} });
    await consumer.start();
    await from.send(newReceived("endless", null));
    await started.promise;
    await consumer.stop({ timeout: 10 });
    await inbox.close();`;
  const args = ["--input-type=module-typescript", "-e", program];
  const child = spawn(process.execPath, args, { cwd: scratchFolder("ending"), stdio: "inherit" });
  try {
    await until("it ends", () => child.exitCode !== null);
    assert.equal(child.exitCode, 0);
  } finally {
    child.kill("SIGKILL");
  }
});
