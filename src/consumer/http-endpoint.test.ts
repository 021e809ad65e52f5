import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { z } from "zod";
import { scratchFolder } from "../../test/scratch.ts";
import { systemClock } from "../clock.ts";
import { type AnyDefinition, defineJob } from "../definition.ts";
import { snooze } from "../handler.ts";
import { createInbox } from "../inbox/inbox.ts";
import { silentLogger } from "../log.ts";
import type { Message } from "../message/message.ts";
import type { PublishResult } from "../message/transport.ts";
import { sqliteInbox } from "../stores/sqlite/index.ts";
import { until } from "../testing/transports/scene.ts";
import { factsSignatureOf, signMessage } from "../transports/http/facts-signature.ts";
import { http } from "../transports/http/route.ts";
import { readSecrets, signWebhook } from "../transports/http/signature.ts";
import { secret } from "../transports/http/test/place.ts";
import { httpEndpoint } from "./index.ts";
import { newReceived } from "./test/memory-source.ts";

function newEndpoint(jobs: readonly AnyDefinition[], options: { maxBodyBytes?: number } = {}) {
  const path = join(scratchFolder("endpoint"), "inbox.db");
  const inbox = createInbox({ store: sqliteInbox({ path, durability: "normal" }) });
  return httpEndpoint({ jobs, inbox, secret, log: silentLogger, ...options });
}

/** A sender and a receiver that know each other. */
async function connect(jobs: readonly AnyDefinition[]) {
  const endpoint = newEndpoint(jobs);
  const server = createServer(endpoint).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jobs`;
  const transport = await http({ url, secret, allow: ["127.0.0.1"] }).transport.open({
    clock: systemClock,
    log: silentLogger,
  });
  return {
    async publish(
      name: string,
      input: unknown,
      headers: Record<string, string> = {},
    ): Promise<PublishResult> {
      const received = newReceived(name, input, headers);
      const message: Message = { ...received, key: "k", destination: url, dedupeId: "d" };
      const [result] = await transport.publish([message], { timeoutMs: 10_000 });
      assert(result !== undefined);
      return result;
    },
    async [Symbol.asyncDispose]() {
      await transport.close();
      await endpoint.stop();
      server.closeAllConnections();
      server.close();
    },
  };
}

describe("an HTTP endpoint, called by the HTTP transport", () => {
  test("the handler runs once, however often the message comes", async () => {
    const seen: unknown[] = [];
    const job = defineJob({
      name: "pay",
      input: z.object({ cents: z.number() }),
      run: ({ input, job: { id } }) => void seen.push([id, input.cents]),
    });
    await using pair = await connect([job]);
    for (let copy = 0; copy < 3; copy++)
      assert.equal((await pair.publish("pay", { cents: 5 }, { "escapement-id": "a" })).kind, "acknowledged");
    assert.deepEqual(seen, [["a", 5]]);
  });

  test("a failure is a refusal with a time, and the last one is a refusal for good", async () => {
    const job = defineJob<null>({
      name: "broken",
      retry: { attempts: 2, backoff: { delay: "40s", jitter: 0 } },
      run: ({ job: { attempt } }) => Promise.reject(new Error(`try ${attempt}`)),
    });
    await using pair = await connect([job]);
    const headers = { "escapement-id": "a" };
    const first = await pair.publish("broken", null, headers);
    assert(first.kind === "refused" && !first.permanent);
    assert.deepEqual([first.retryAfterMs, first.ofJob], [40_000, true]);
    const second = await pair.publish("broken", null, headers);
    assert(second.kind === "refused" && second.permanent);
    assert.match(second.error.message, /answered 422: failed 2 times: try 2/);
  });

  test("a copy while the first is at work, and a snooze, are refusals with a time", async () => {
    const gate = Promise.withResolvers<void>();
    let runs = 0;
    const slow = defineJob<null>({
      name: "slow",
      run: () => {
        runs += 1;
        return gate.promise;
      },
    });
    const later = defineJob<null>({ name: "later", run: () => snooze("90s") });
    await using pair = await connect([slow, later]);
    const headers = { "escapement-id": "a" };
    const first = pair.publish("slow", null, headers);
    await until("it runs", () => runs === 1);
    const copy = await pair.publish("slow", null, headers);
    assert(copy.kind === "refused" && !copy.permanent && (copy.retryAfterMs ?? 0) > 0);
    gate.resolve();
    assert.equal((await first).kind, "acknowledged");
    const snoozed = await pair.publish("later", null);
    assert(snoozed.kind === "refused" && snoozed.retryAfterMs === 90_000);
  });

  test("what can never work is refused for good", async () => {
    const job = defineJob({ name: "strict", input: z.object({ n: z.number() }), run: () => null });
    await using pair = await connect([job]);
    for (const [name, input, says] of [
      ["unheard-of", null, /answered 404: .*no definition/],
      ["strict", { n: "1" }, /answered 422: .*does not fit its schema/],
    ] as const) {
      const result = await pair.publish(name, input);
      assert(result.kind === "refused" && result.permanent);
      assert.match(result.error.message, says);
    }
  });
});

describe("an HTTP endpoint, called by others", () => {
  let runs = 0;
  const job = defineJob<null>({ name: "pay", run: () => void runs++ });
  const request = (body: string, headers: Record<string, string>, method = "POST"): Request =>
    new Request("http://receiver.example/jobs", { method, headers, ...(method === "POST" ? { body } : {}) });
  const signed = (id: string, changes: Record<string, string> = {}) => {
    const { headers, body } = newReceived("pay", null, { "escapement-id": id });
    return { body, headers: { ...signMessage({ headers, body, secret }), ...changes } };
  };

  test("a request of the fetch kind that is signed is handled", async () => {
    const endpoint = newEndpoint([job]);
    const { headers, body } = signed("a");
    const response = await endpoint.fetch(request(body, headers));
    assert.deepEqual([response.status, await response.text()], [200, "handled"]);
    const again = await endpoint.fetch(request(body, headers));
    assert.deepEqual([again.status, await again.text()], [200, "duplicate"]);
    await endpoint.stop();
  });

  /** The signature over the headers of a message under another id. */
  const factsOf = (id: string) => {
    const { headers, body } = newReceived("pay", null, { "escapement-id": "b" });
    const timestamp = Math.floor(Date.now() / 1_000);
    const keys = readSecrets(secret, "secret");
    return { "escapement-signature": factsSignatureOf({ id, timestamp, body }, headers, keys) };
  };

  test("without a signature that fits, nothing runs", async () => {
    const endpoint = newEndpoint([job], { maxBodyBytes: 100 });
    const before = runs;
    const { headers, body } = signed("b");
    const { "webhook-signature": _signature, ...unsigned } = headers;
    const cases = [
      [401, request(body, unsigned)],
      [401, request("[null]", headers)],
      [401, request(body, { ...headers, "webhook-id": "other" })],
      [401, request(body, signed("b", { "idempotency-key": "other" }).headers)],
      // What was signed is not what the inbox would remember.
      [
        400,
        request(body, { ...headers, ...signWebhook({ id: "other", body, secret }), ...factsOf("other") }),
      ],
      [405, request("", headers, "GET")],
      [413, request("x".repeat(101), headers)],
    ] as const;
    for (const [status, one] of cases) assert.equal((await endpoint.fetch(one)).status, status);
    assert.equal(runs, before);
    await endpoint.stop();
  });

  test("one captured request is good for that request only: nothing else runs, and nothing runs again", async () => {
    const seen: string[] = [];
    const once = { delivery: "at-most-once" } as const;
    const jobs = ["pay", "refund"].map((name) =>
      defineJob<null>({ ...once, name, run: () => void seen.push(name) }),
    );
    const endpoint = newEndpoint(jobs);
    const { headers: facts, body } = newReceived("pay", null, {
      "escapement-id": "captured",
      "escapement-delivery": "at-most-once",
      "escapement-schedule": "nightly",
    });
    const headers = signMessage({ headers: facts, body, secret });
    const without = (name: string) =>
      Object.fromEntries(Object.entries(headers).filter(([one]) => one !== name));
    assert.equal((await endpoint.fetch(request(body, headers))).status, 200);
    const changed = [
      ...["1", "2", "3", "4", "5"].map((redrives) => ({ ...headers, "escapement-redrives": redrives })),
      ...Object.keys(facts)
        .filter((name) => name !== "content-type")
        .flatMap((name) => [{ ...headers, [name]: "refund" }, without(name)]),
      { ...headers, "escapement-published-at": "2026-11-15T03:00:00.017Z" },
      { ...headers, "escapement-signature": headers["webhook-signature"] ?? "" },
      without("escapement-signature"),
    ];
    for (const one of changed) assert.equal((await endpoint.fetch(request(body, one))).status, 401);
    const again = await endpoint.fetch(request(body, headers));
    assert.deepEqual([again.status, await again.text()], [200, "duplicate"]);
    assert.deepEqual(seen, ["pay"]);
    await endpoint.stop();
  });

  test("an inbox that fails is the endpoint's trouble, and not the job's", async () => {
    const path = join(process.execPath, "no folder", "inbox.db");
    const inbox = createInbox({ store: sqliteInbox(path) });
    const endpoint = httpEndpoint({ jobs: [job], inbox, secret, log: silentLogger });
    const { headers, body } = signed("unlucky");
    const response = await endpoint.fetch(request(body, headers));
    assert.deepEqual([response.status, response.headers.get("escapement-refusal")], [503, null]);
    await endpoint.stop();
  });

  test("a body in other bytes than UTF-8 is refused, though a string of it would be what was signed", async () => {
    const endpoint = newEndpoint([job]);
    const before = runs;
    const { headers, body } = newReceived("pay", "\ufffd", { "escapement-id": "bytes" });
    const signedHeaders = signMessage({ headers, body, secret });
    const bytes = Buffer.from(body.replace("\ufffd", "\xff"), "latin1");
    assert.equal(bytes.toString(), body);
    const fetched = new Request("http://receiver.example/jobs", {
      method: "POST",
      headers: signedHeaders,
      body: bytes,
    });
    assert.equal((await endpoint.fetch(fetched)).status, 400);
    const server = createServer(endpoint).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jobs`;
    const posted = await fetch(url, { method: "POST", headers: signedHeaders, body: bytes });
    assert.deepEqual([posted.status, await posted.text()], [400, "expected a body in UTF-8"]);
    assert.equal(runs, before);
    server.close();
    await endpoint.stop();
  });

  test("a body without end is not read to its end", async () => {
    const endpoint = newEndpoint([job], { maxBodyBytes: 1_000 });
    let pulled = 0;
    const body = new ReadableStream({
      pull(controller) {
        pulled += 1;
        controller.enqueue(new Uint8Array(600));
      },
    });
    const endless = new Request("http://receiver.example/jobs", { method: "POST", body, duplex: "half" });
    assert.equal((await endpoint.fetch(endless)).status, 413);
    assert(pulled < 10, `${pulled} pieces were read`);
    await endpoint.stop();
  });

  test("what comes after a stop is refused for now, and starts no handler", async () => {
    const endpoint = newEndpoint([job]);
    const before = runs;
    await endpoint.stop();
    const { headers, body } = signed("late", { "escapement-delivery": "at-most-once" });
    const response = await endpoint.fetch(request(body, headers));
    assert.deepEqual([response.status, await response.text(), runs], [503, "stopping", before]);
  });

  test("a stop waits no longer than it was told to for a handler that ignores its signal", async () => {
    const started = Promise.withResolvers<void>();
    const stuck = defineJob<null>({
      name: "pay",
      run: () => {
        started.resolve();
        return new Promise(() => {});
      },
    });
    const endpoint = newEndpoint([stuck]);
    const { headers, body } = signed("stuck");
    void endpoint.fetch(request(body, headers));
    await started.promise;
    await endpoint.stop({ timeout: 10 });
  });

  test("an answer that somebody else has given first is left as it is", async () => {
    const [started, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slow = defineJob<null>({
      name: "pay",
      run: () => {
        started.resolve();
        return answered.promise;
      },
    });
    const endpoint = newEndpoint([slow]);
    const server = createServer((incoming, outgoing) => {
      endpoint(incoming, outgoing);
      void started.promise.then(() => outgoing.writeHead(504).end("too slow"));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jobs`;
    const { headers, body } = signed("slow");
    assert.equal((await fetch(url, { method: "POST", headers, body })).status, 504);
    // Its own answer, which comes now, must not end the process.
    answered.resolve();
    await endpoint.stop();
    await new Promise((resolve) => setImmediate(resolve));
    server.close();
  });
});
