import assert from "node:assert/strict";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { describe, test } from "node:test";
import { Redis } from "ioredis";
import { testbed } from "../../../testbed/index.ts";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import { FaultProxy } from "../../proof/proxy.ts";
import type { ClaimParams } from "../../store/claims.ts";
import type { Notice } from "../../store/notices.ts";
import type { StoreContext } from "../../store/opening.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { loseReply } from "../../testing/lost-reply.ts";
import { patiently, until } from "../../testing/until.ts";
import { type RedisOptions, redis } from "./index.ts";
import { admin } from "./test/admin.ts";
import { newPrefix, openStore } from "./test/harness.ts";

const server = await testbed.redis();
const context: StoreContext = { namespace: "n", clock: systemClock, log: silentLogger };
const open = (options: RedisOptions): Promise<Store> => openStore(options, context);
const names = [{ name: "work", concurrency: null, rate: null }];
const claimOf = (changes: Partial<ClaimParams> = {}): ClaimParams => ({
  claimer: "c",
  sequence: 1,
  leaseMs: 30_000,
  limit: 5,
  queues: null,
  names,
  alone: false,
  ...changes,
});

describe("the way to Redis", { skip: server.skip }, () => {
  test("killed connections are replaced, and scripts that were forgotten are sent again [K6]", async () => {
    await using own = await testbed.redis({ private: true });
    const store = await open({ url: own.url });
    await using person = await admin(own.url);
    for (let round = 0; round < 3; round += 1) {
      await person.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await person.call("SCRIPT", "FLUSH");
      await patiently(() => store.enqueue({ jobs: [newJob(`j${round}`)] }));
    }
    assert.deepEqual(await store.count({ filter: {}, by: [] }), [{ count: 3 }]);
    await store.close();
  });

  test("wake-ups go on after the listening connection was killed", async () => {
    await using own = await testbed.redis({ private: true });
    const [listening, sending] = [await open({ url: own.url }), await open({ url: own.url })];
    const heard: Notice[] = [];
    const stop = await listening.subscribe((notice) => heard.push(notice));
    await using person = await admin(own.url);
    await person.call("CLIENT", "KILL", "TYPE", "pubsub");
    let sent = 0;
    await until("a notice arrives again", async () => {
      sent += 1;
      await patiently(() => sending.enqueue({ jobs: [newJob(`j${sent}`, { queue: `q${sent}` })] }));
      return heard.some((notice) => notice.kind === "jobs" && notice.queues !== null);
    });
    assert(
      heard.some((notice) => notice.kind === "jobs" && notice.queues === null),
      "whoever was deaf for a while is told that it may have missed anything",
    );
    await stop();
    await listening.close();
    await sending.close();
  });

  for (const whose of ["its own", "the caller's"] as const) {
    test(`a connection that breaks while it subscribes again ends no process, on ${whose} client [K6]`, async () => {
      await using gate = await openGate(server.url);
      const prefix = newPrefix(server);
      const client = new Redis(gate.url);
      const options = whose === "its own" ? { url: gate.url } : { client };
      const [listening, sending] = [
        await open({ ...options, prefix }),
        await open({ url: server.url, prefix }),
      ];
      const heard: Notice[] = [];
      await listening.subscribe((notice) => heard.push(notice));
      gate.breakNextSubscribe();
      await until("it was broken off while it subscribed again", () => gate.broken);
      let sent = 0;
      await until("a notice arrives again", async () => {
        sent += 1;
        await sending.enqueue({ jobs: [newJob(`j${sent}`, { queue: `q${sent}` })] });
        return heard.some((notice) => notice.kind === "jobs" && notice.queues !== null);
      });
      await listening.close();
      await sending.close();
      client.disconnect();
    });
  }

  test("a connection that hangs is given up in time and thrown away, and the next call uses another", async () => {
    await using proxy = await FaultProxy.start(server.url);
    const prefix = newPrefix(server);
    const store = await patiently(() => open({ url: proxy.url, prefix, callTimeout: "1s" }));
    await patiently(() => store.enqueue({ jobs: [newJob("before")] }));
    // It lasts far longer than the test may: whoever answers has given up.
    proxy.blackHole(600_000);
    await assert.rejects(store.enqueue({ jobs: [newJob("lost")] }), { code: "store-unavailable" });
    proxy.pass();
    assert.equal((await patiently(() => store.get({ ids: ["before"] })))[0]?.state, "waiting");
    await store.close();
  });

  test("however many calls wait for a server that is away, they wait with one listener", async (t) => {
    await using own = await testbed.redis({ private: true });
    const client = new Redis(own.url, { retryStrategy: () => 50 });
    t.after(() => client.disconnect());
    client.on("error", () => {});
    const store = await open({ client });
    const listeners = (): number => client.listenerCount("ready") + client.listenerCount("error");
    const before = listeners();
    await own.kill();
    await until("the connection is gone", () => client.status !== "ready");
    const calls = Array.from({ length: 30 }, (_, index) =>
      patiently(() => store.enqueue({ jobs: [newJob(`j${index}`)] })),
    );
    await until("calls wait", () => listeners() > before);
    // Ours are two, and the client has its own while it connects; the calls are thirty.
    assert.ok(listeners() <= before + 6, `${listeners() - before} more listeners`);
    await own.restart();
    await Promise.all(calls);
    assert.equal(listeners(), before);
    await store.close();
  });

  test("an enqueue whose reply was lost is the same job when it is repeated [C3]", async () => {
    const prefix = newPrefix(server);
    const direct = await open({ url: server.url, prefix });
    await using proxy = await FaultProxy.start(server.url);
    const store = await open({ url: proxy.url, prefix });
    const enqueue = () => store.enqueue({ jobs: [newJob("a")] });
    await loseReply(proxy, enqueue, async () => (await direct.get({ ids: ["a"] }))[0] !== null);
    const [result] = await patiently(enqueue);
    assert.equal(result?.outcome, "existing");
    await store.close();
    await direct.close();
  });

  test("a claim whose reply was lost is answered again with the same jobs, and a copy that comes late takes nothing [A7]", async () => {
    const prefix = newPrefix(server);
    const direct = await open({ url: server.url, prefix });
    await using proxy = await FaultProxy.start(server.url);
    const store = await open({ url: proxy.url, prefix });
    // The server knows the script after this one, so the claim below is one trip.
    await store.claim(claimOf({ sequence: 0 }));
    await direct.enqueue({ jobs: [newJob("a", { delivery: "at-most-once" })] });
    const isActive = async () => (await direct.get({ ids: ["a"] }))[0]?.state === "active";
    await loseReply(proxy, () => store.claim(claimOf()), isActive);
    const again = await patiently(() => store.claim(claimOf()));
    assert.deepEqual(
      again.jobs.map(({ id, token }) => [id, token]),
      [["a", 1]],
    );
    // Nothing is due now. The claim is lost on its way there, repeated, and answered; then the first copy arrives.
    const hasty = await patiently(() => open({ url: proxy.url, prefix, callTimeout: 300 }));
    proxy.cut(600_000);
    await assert.rejects(hasty.claim(claimOf({ sequence: 2 })), { code: "store-unavailable" });
    proxy.pass();
    assert.deepEqual((await patiently(() => hasty.claim(claimOf({ sequence: 2 })))).jobs, []);
    await hasty.close();
    await direct.enqueue({ jobs: [newJob("b", { delivery: "at-most-once" })] });
    assert.deepEqual((await direct.claim(claimOf({ sequence: 2 }))).jobs, [], "the late copy");
    assert.equal((await direct.claim(claimOf())).outcome, "stale");
    await store.close();
    await direct.close();
  });

  test("a server that is not there, or refuses the password, is told apart, without the password", async () => {
    const url = new URL(server.url);
    url.password = "not-the-secret";
    const refused = redis({ url: url.href, callTimeout: "30s" }).open(context);
    await assert.rejects(refused, (error: Error & { code: string }) => {
      assert.equal(error.code, "store-unsupported");
      assert.match(error.message, /check the user and the password/);
      assert.doesNotMatch(
        `${error.stack} ${JSON.stringify(error)} ${JSON.stringify(error.cause)}`,
        /not-the-secret/,
      );
      return true;
    });
    const nobody = redis({ url: "redis://:not-the-secret@127.0.0.1:1", callTimeout: 300 }).open(context);
    await assert.rejects(nobody, (error: Error & { code: string }) => {
      assert.equal(error.code, "store-unavailable");
      assert.doesNotMatch(`${error.stack} ${JSON.stringify(error)}`, /not-the-secret/);
      return true;
    });
  });

  test("a replica, and a server whose memory is full, are told as what they are", async () => {
    await using own = await testbed.redis({ private: true });
    await using person = await admin(own.url);
    const store = await open({ url: own.url });
    await person.call("REPLICAOF", "127.0.0.1", "1");
    await assert.rejects(store.enqueue({ jobs: [newJob("a")] }), { code: "store-readonly" });
    await person.call("REPLICAOF", "NO", "ONE");
    await patiently(() => store.enqueue({ jobs: [newJob("a")] }));
    await person.call("CONFIG", "SET", "maxmemory", "1");
    await assert.rejects(store.enqueue({ jobs: [newJob("b")] }), { code: "store-full" });
    assert.equal((await store.get({ ids: ["b"] }))[0], null);
    await person.call("CONFIG", "SET", "maxmemory", "0");
    await store.enqueue({ jobs: [newJob("b")] });
    await store.close();
  });

  test("a client of one's own is used, and stays open", async () => {
    const client = new Redis(server.url);
    const store = await open({ client, prefix: newPrefix(server) });
    assert.equal(store.address, null);
    const stop = await store.subscribe(() => undefined);
    await store.enqueue({ jobs: [newJob("a")] });
    await stop();
    await store.close();
    assert.equal(await client.ping(), "PONG");
    client.disconnect();
  });

  test("another thread opens the same store by its address", async () => {
    const store = await open({ url: server.url, prefix: newPrefix(server) });
    await store.enqueue({ jobs: [newJob("a")] });
    assert(store.address !== null);
    const module = await import(store.address.module);
    const again: Store = await module.openStore(structuredClone(store.address.options), context);
    assert.equal((await again.get({ ids: ["a"] }))[0]?.state, "waiting");
    await again.close();
    await store.close();
  });
});

describe("a namespace on Redis", { skip: server.skip }, () => {
  test("without migrate it is refused in plain words, and what migrate would do can be read", async () => {
    const store = await redis({ url: server.url, prefix: newPrefix(server) }).open(context);
    await assert.rejects(store.enqueue({ jobs: [newJob("a")] }), { code: "store-unmigrated" });
    const [pending] = await store.pendingMigrations();
    assert.match(pending?.sql ?? "", /^HSET "\{.*\}:meta" version 1/);
    await store.migrate();
    assert.deepEqual(await store.pendingMigrations(), []);
    await store.enqueue({ jobs: [newJob("a")] });
    await store.close();
  });

  test("one that a newer library has changed beyond this one is refused; a newer one that is not breaking works", async () => {
    const prefix = newPrefix(server);
    await (await open({ url: server.url, prefix })).close();
    await using person = await admin(server.url);
    await person.call("HSET", `{${prefix}:n:0}:meta`, "version", "9");
    await (await open({ url: server.url, prefix })).close();
    await person.call("HSET", `{${prefix}:n:0}:meta`, "breaking", "9");
    await assert.rejects(open({ url: server.url, prefix }), { code: "store-newer" });
  });

  test("its number of slots is decided once", async () => {
    const prefix = newPrefix(server);
    await (await open({ url: server.url, prefix, slots: 2 })).close();
    await assert.rejects(open({ url: server.url, prefix }), /expected slots to be 2, .* got 1/);
    await (await open({ url: server.url, prefix, slots: 2 })).close();
  });
});

describe("time on Redis is the server's", { skip: server.skip }, () => {
  /** A node whose clock is off. */
  const nodeAt = (offMs: number): StoreContext => ({
    ...context,
    clock: { ...systemClock, now: () => systemClock.now() + offMs },
  });

  test("a node whose clock is off by five minutes neither fires early nor twice [B7]", async () => {
    const prefix = newPrefix(server);
    const [behind, ahead] = await Promise.all(
      [-300_000, 300_000].map((offMs) => openStore({ url: server.url, prefix }, nodeAt(offMs))),
    );
    assert(behind && ahead);
    const since = performance.now();
    await ahead.enqueue({ jobs: [newJob("soon", { delayMs: 400 }), newJob("later", { delayMs: 250_000 })] });
    const taken: string[] = [];
    let sequence = 0;
    await until("the job is due", async () => {
      sequence += 1;
      for (const [claimer, store] of Object.entries({ behind, ahead })) {
        const { jobs } = await store.claim(claimOf({ claimer, sequence }));
        taken.push(...jobs.map(({ id }) => id));
      }
      return taken.length > 0;
    });
    assert.deepEqual(taken, ["soon"]);
    assert(performance.now() - since >= 390, "it came early");
    await behind.close();
    await ahead.close();
  });

  test("leases run out by the server's clock, whatever the reaper's own says [C2]", async () => {
    const prefix = newPrefix(server);
    const holder = await open({ url: server.url, prefix });
    const reaper = await openStore({ url: server.url, prefix }, nodeAt(300_000));
    await holder.enqueue({ jobs: [newJob("a")] });
    const since = performance.now();
    await holder.claim(claimOf({ leaseMs: 500 }));
    await until("the lease has run out", async () => (await reaper.reap({ limit: 10 })).reaped.length === 1);
    assert(performance.now() - since >= 490, "it was reaped early");
    await holder.close();
    await reaper.close();
  });
});

describe("an ACL user on Redis", { skip: server.skip }, () => {
  test("may be held to what docs/REDIS.md says, and CONFIG may be forbidden", async () => {
    const prefix = newPrefix(server);
    await using person = await admin(server.url);
    const rights = [
      `~{${prefix}:*`,
      "resetchannels",
      `&{${prefix}:*`,
      "+@read",
      "+@write",
      "+@scripting",
      "+@pubsub",
      "+@connection",
    ];
    await person.call("ACL", "SETUSER", prefix, "on", ">secret", ...rights, "+info", "+time");
    const url = new URL(server.url);
    [url.username, url.password] = [prefix, "secret"];
    const store = await open({ url: url.href, prefix });
    assert.equal(store.capabilities.durability, "weak", "nobody knows what the server keeps");
    const heard = Promise.withResolvers<Notice>();
    const stop = await store.subscribe(heard.resolve);
    await store.enqueue({ jobs: [newJob("a")] });
    assert.equal((await store.claim(claimOf())).jobs.length, 1);
    assert.equal((await heard.promise).kind, "jobs");
    await stop();
    await store.close();
    await assert.rejects(open({ url: url.href, prefix: newPrefix(server) }), { code: "store-unsupported" });
    await person.call("ACL", "DELUSER", prefix);
  });
});

/** A way to the server that closes all connections, and then the first one that subscribes again, before it was answered. */
async function openGate(
  url: string,
): Promise<AsyncDisposable & { readonly url: string; readonly broken: boolean; breakNextSubscribe(): void }> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let armed = false;
  let broken = false;
  const gate = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => to.destroy());
    }
    far.on("data", (data) => near.write(data));
    near.on("data", (data) => {
      if (!armed || !/subscribe/i.test(String(data))) return void far.write(data);
      armed = false;
      broken = true;
      near.destroy();
    });
  });
  await new Promise<void>((resolve) => gate.listen(0, "127.0.0.1", resolve));
  return {
    url: url.replace(target.host, `127.0.0.1:${(gate.address() as AddressInfo).port}`),
    get broken() {
      return broken;
    },
    breakNextSubscribe() {
      armed = true;
      for (const socket of sockets) socket.destroy();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      gate.close();
    },
  };
}
