import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { createEscapement, defineJob } from "../src/index.ts";
import { silentLogger } from "../src/log.ts";
import { configure, escapement } from "./command.ts";
import { scratchFolder } from "./scratch.ts";

const nowhere = { kind: "nowhere", address: "", open: () => assert.fail() };
const route = { transport: nowhere, destination: "-", dispatchTimeoutMs: 1_000 };
const hook = defineJob<null>({ name: "hook", route });
const work = defineJob<null>({ name: "work" });

/** What this process enqueues, and the command then finds. */
function appIn(folder: string) {
  return createEscapement({ store: `sqlite:${join(folder, "app.db")}`, log: silentLogger });
}

/** A receiver that answers with a status after a while. */
async function listen(status: number, afterMs = 0): Promise<{ server: Server; port: number }> {
  const server = createServer((request, response) => {
    request.resume();
    setTimeout(() => response.writeHead(status).end(), afterMs).unref();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, port: (server.address() as AddressInfo).port };
}

function close(server: Server): void {
  server.closeAllConnections();
  server.close();
}

const nothing = { count: 0, unpublished: 0, paused: 0, unhandled: 0 };

describe("tick", () => {
  test("it ends also when a relay has published, and waits for a broker that takes long [K12]", async () => {
    const folder = scratchFolder();
    const { server, port } = await listen(200, 3_000);
    configure(folder, `defineJob({ name: "hook", route: hook(${port}) })`);
    const app = appIn(folder);
    await app.enqueue(hook, null);
    await app.stop();
    const { stdout, stderr } = await escapement(folder, "tick", "--json");
    close(server);
    assert.deepEqual(JSON.parse(stdout || stderr), { succeeded: 1, failed: 0, reaped: 0, left: nothing });
  });

  test("it ends where a broker never answers", async () => {
    const folder = scratchFolder();
    const { server, port } = await listen(200, 3_600_000);
    const route = `hook(${port}, { requestTimeout: "8s" })`;
    configure(folder, `defineJob({ name: "hook", route: ${route} })`, { settings: 'lease: "1s"' });
    const app = appIn(folder);
    for (let n = 0; n < 20; n++) await app.enqueue(hook, null);
    await app.stop();
    const { code, stdout } = await escapement(folder, "tick", "--json");
    close(server);
    assert.equal(code, 0, "it ended by itself");
    const { left } = JSON.parse(stdout);
    assert.deepEqual(left, { ...nothing, count: 20, unpublished: 20 });
  });

  test("it waits for a receiver that takes longer than a lease, and tells nothing as left that was done", async () => {
    const folder = scratchFolder();
    const { server, port } = await listen(200, 8_000);
    configure(folder, `defineJob({ name: "hook", delivery: "at-most-once", route: hook(${port}) })`, {
      settings: 'lease: "3s"',
    });
    const app = appIn(folder);
    await app.enqueue(defineJob<null>({ name: "hook", delivery: "at-most-once", route }), null);
    await app.stop();
    const { stdout, stderr } = await escapement(folder, "tick", "--json");
    close(server);
    assert.deepEqual(JSON.parse(stdout || stderr), { succeeded: 1, failed: 0, reaped: 0, left: nothing });
  });

  test("it ends where a schedule has work every second, and leaves to the next one what is due later", async () => {
    const folder = scratchFolder();
    configure(
      folder,
      `defineJob({ name: "work", run: () => new Promise((resolve) => setTimeout(resolve, 1_200)) })`,
    );
    const app = appIn(folder);
    const since = Date.now();
    await app.schedule("often", { every: "1s" }, work, null);
    await app.pauseQueue("slow");
    await app.enqueue(defineJob<null>({ name: "work", queue: "slow" }), null);
    await app.stop();
    const { code, stdout } = await escapement(folder, "tick", "--json");
    assert.equal(code, 0, "it ended by itself");
    const { succeeded, left } = JSON.parse(stdout);
    const due = Math.ceil((Date.now() - since) / 1_000);
    assert.ok(succeeded <= due, `${succeeded} occurrences were run, ${due} can have been due`);
    assert.deepEqual(left, { ...nothing, count: 1, paused: 1 });
  });

  test("it ends where handlers enqueue what is due at once, also with a time of the past", async () => {
    const folder = scratchFolder();
    configure(
      folder,
      `defineJob({ name: "work", run: async () => {
         await using client = createEscapement({ store: "sqlite:app.db", jobs: [] });
         await client.enqueue(defineJob({ name: "work" }), null, { runAt: new Date(0) });
       } })`,
    );
    const app = appIn(folder);
    await app.enqueue(work, null);
    await app.stop();
    assert.equal((await escapement(folder, "tick")).code, 0, "it ended by itself");
  });

  test("it plans and runs all that a schedule has missed before it ends", async () => {
    const folder = scratchFolder();
    configure(folder, `defineJob({ name: "work", run: () => {} })`);
    const app = appIn(folder);
    await app.schedule("missed", { every: "1h", misfire: "all", lookback: "52w", catchUp: 300 }, work, null);
    await app.stop();
    using database = new DatabaseSync(join(folder, "app.db"));
    database.exec(`update escapement_schedules set next_at = next_at - ${300 * 3_600_000}`);
    const { stdout } = await escapement(folder, "tick", "--json");
    assert.equal(JSON.parse(stdout).succeeded, 300);
  });

  test("what it could not run or publish is told, with the reason", async () => {
    const folder = scratchFolder();
    const { server, port } = await listen(503);
    configure(
      folder,
      `defineJob({ name: "hook", route: hook(${port}) }), defineJob({ name: "work", run: () => {} })`,
    );
    const app = appIn(folder);
    await app.enqueue(hook, null);
    await app.enqueue(defineJob<null>({ name: "other" }), null);
    await app.pauseQueue("slow");
    await app.enqueue(defineJob<null>({ name: "work", queue: "slow" }), null);
    await app.enqueue(work, null, { delay: "1h" });
    await app.stop();
    const { code, stdout } = await escapement(folder, "tick");
    close(server);
    assert.deepEqual(
      [code, stdout],
      [
        0,
        "0 succeeded, 0 failed, 0 reaped\n" +
          "3 due jobs are left: 1 could not be published, 1 in a paused queue, 1 with a name that no definition here has\n",
      ],
    );
  });
});
