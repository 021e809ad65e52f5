import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { toNodeListener } from "../api/index.ts";
import { openSession, tokens } from "../api/test/api-session.ts";
import { ApiError, type Client, createClient } from "./index.ts";

describe("a client of the HTTP API", () => {
  const { api, app } = openSession();
  const server = createServer((incoming, outgoing) => void toNodeListener(api)(incoming, outgoing));
  let url = "";
  let client: Client;
  before(async () => {
    await app.start();
    await once(server.listen(0, "127.0.0.1"), "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    client = createClient({ url: `${url}/`, token: async () => tokens.admin });
  });
  after(async () => {
    server.close();
    await app.stop();
  });
  const codeOf = (code: string) => (error: unknown) => error instanceof ApiError && error.code === code;

  test("enqueues, waits for the result, and asks", async () => {
    const { id, outcome } = await client.enqueue({ name: "mail", input: { to: "ann" }, tags: ["a b&c=d/ü"] });
    assert.equal(outcome, "added");
    assert.deepEqual(await client.result(id), { sent: "ann" });
    const { job } = await client.get(id);
    assert.deepEqual([job.state, job.tags], ["succeeded", ["a b&c=d/ü"]]);
    const { jobs } = await client.list({ state: ["succeeded", "dead"], tag: ["a b&c=d/ü"], since: "1h" });
    assert.deepEqual(
      jobs.map((one) => one.id),
      [id],
    );
    const odd = await client.enqueue({ name: "mail", id: "x/y?z#é", input: { to: "nobody" } });
    await assert.rejects(client.result(odd.id), codeOf("job-failed"));
    assert.deepEqual(await client.redrive(odd.id, { reason: "again" }), { outcome: "redriven" });
    await assert.rejects(client.result(odd.id), codeOf("job-failed"));
    assert.deepEqual(await client.delete(odd.id), { outcome: "deleted" });
    await assert.rejects(client.get(odd.id), codeOf("not-found"));
    const later = await client.enqueue({ name: "mail", delay: "1h" });
    await assert.rejects(client.result(later.id, { timeoutMs: 1 }), codeOf("result-timeout"));
    assert.deepEqual(await client.cancel(later.id), { outcome: "cancelled" });
  });

  test("acts on queues, schedules and all that match", async () => {
    assert.equal((await client.pauseQueue("other", { reason: "a test" })).paused, true);
    assert((await client.queues()).some(({ queue, paused }) => queue === "other" && paused));
    assert.equal((await client.limitQueue("other", { concurrency: 3 })).concurrency, 3);
    await client.putSchedule("nightly", { spec: { cron: "0 3 * * *" }, job: "mail", input: { to: "ann" } });
    assert.equal((await client.previewRule({ spec: { cron: "0 4 * * *" }, count: 2 })).times.length, 2);
    assert.equal((await client.changeRule("nightly", { spec: { cron: "0 4 * * *" } })).outcome, "changed");
    assert.deepEqual((await client.children("nobody")).children, []);
    assert.equal((await client.definitions()).definitions[0]?.name, "mail");
    assert.equal((await client.nextTimes("nightly", 2)).length, 2);
    assert.deepEqual(await client.removeSchedule("nightly"), { removed: "nightly" });
    const { id } = await client.deleteAll({ state: ["succeeded"] }, { dryRun: true });
    for (let task = await client.task(id); task.state !== "done"; task = await client.task(id));
    assert.equal((await client.health()).engine, "memory");
    assert((await client.audit({ action: ["pause-queue"] })).entries.length > 0);
  });

  test("an enqueue whose answer was lost is one job", async () => {
    let calls = 0;
    const losing: typeof fetch = async (input, init) => {
      const response = await fetch(input, init);
      calls += 1;
      if (calls === 1) throw new TypeError("fetch failed");
      return response;
    };
    const before = await app.count();
    const flaky = createClient({ url, token: tokens.operate, fetch: losing });
    const { outcome } = await flaky.enqueue({ name: "mail", input: { to: "bob" }, delay: "1h" });
    assert.deepEqual([outcome, calls, await app.count()], ["existing", 2, before + 1]);
  });

  test("what changes something is not sent again, and errors have their codes", async () => {
    let calls = 0;
    const failing: typeof fetch = async () => {
      calls += 1;
      throw new TypeError("fetch failed");
    };
    await assert.rejects(createClient({ url, fetch: failing }).cancel("x"), codeOf("no-answer"));
    assert.equal(calls, 1);
    const reader = createClient({ url, token: tokens.read });
    await assert.rejects(reader.pauseQueue("post"), codeOf("forbidden"));
    await assert.rejects(createClient({ url }).queues(), codeOf("unauthorised"));
    await assert.rejects(client.list({ limit: 5_000 }), codeOf("invalid-request"));
  });
});
