import assert from "node:assert/strict";
import { defineJob, EscapementError } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import type { Store } from "../../src/store/store.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { ScriptedTransport } from "../behaviour/scripted-transport.ts";

/** What is there before something else writes to the store. */
export const victims = [
  ...["ended", "waiting", "debounced", "keyed", "rated", "child", "expiring", "active", "failed"],
  ...["relayed", "named"],
] as const;

/** Several times what an app asks the store in 45 seconds where nothing is wrong. */
const mostCalls = 2_000;

/** One app's life beside rows that somebody else has written to. */
export class Scene {
  readonly clock = new VirtualClock();
  readonly store: StoreFactory;
  readonly broker = new ScriptedTransport(this.clock);
  readonly ran: string[] = [];
  readonly errors: { readonly error: unknown; readonly during: string }[] = [];

  /** How often the store was asked for anything. */
  calls = 0;

  constructor(store: StoreFactory) {
    this.store = {
      open: async (context) => {
        const opened = await store.open(context);
        return new Proxy(opened, {
          get: (_, key) => {
            const value: unknown = Reflect.get(opened, key, opened);
            if (typeof value !== "function") return value;
            this.calls += 1;
            return value.bind(opened);
          },
        });
      },
    };
  }

  app(): TestEscapement {
    const run = ({ job: { id } }: { job: { id: string } }): void => void this.ran.push(id);
    const jobs = [
      defineJob<unknown>({ name: "plain", run }),
      defineJob<unknown>({ name: "keyed", run, concurrency: { limit: 2, key: String } }),
      defineJob<unknown>({ name: "rated", run, rate: { limit: 1_000, per: "1s", key: String } }),
      defineJob<unknown>({
        name: "single",
        run,
        queue: "victims",
        unique: { key: () => "u", for: "pending" },
      }),
      defineJob<unknown>({ name: "calm", run, debounce: { key: () => "d", wait: "5s" } }),
      defineJob<unknown>({ name: "failing", run: () => Promise.reject(new Error("as it should")) }),
      defineJob<unknown>({ name: "sent", route: this.broker.route() }),
    ];
    const relay = { partitions: 2 };
    const app = new TestEscapement({ store: this.store, jobs, relay, log: silentLogger }, this.clock);
    app.on("error", (event) => this.errors.push(event));
    return app;
  }

  /** Jobs in every state, a schedule, a queue, a node and a relay that are gone. */
  async prepare(): Promise<void> {
    const app = this.app();
    await app.start();
    await app.enqueue("plain", 1, { id: "ended", tags: ["a"] });
    await app.enqueue("failing", 1, { id: "failed", attempts: 1 });
    await app.advance("1s");
    await app[Symbol.asyncDispose]();
    const idle = this.app();
    await idle.enqueue("single", 1, { id: "waiting", tags: ["a"] });
    await idle.enqueue("single", 1, { id: "absorbed" });
    await idle.enqueue("calm", 1, { id: "debounced" });
    await idle.enqueue("keyed", 1, { id: "keyed" });
    await idle.enqueue("rated", 1, { id: "rated" });
    await idle.enqueue("plain", 1, { id: "child", after: [{ id: "keyed" }] });
    await idle.enqueue("plain", 1, { id: "expiring", delay: "20s", expireIn: "1s" });
    await idle.enqueue("sent", 1, { id: "named" });
    await idle.configureQueue("victims", { concurrency: 1, rate: { limit: 100, per: "1s" } });
    await idle.schedule("victim", { every: "10s" }, "plain", 1);
    await idle.enqueue("plain", 1, { id: "active", priority: 100, attempts: 3 });
    await this.within((store) => this.#crash(store));
    await idle.enqueue("sent", 1, { id: "relayed" });
    await idle[Symbol.asyncDispose]();
  }

  async within<T>(use: (store: Store) => Promise<T>): Promise<T> {
    const store = await this.store.open({ namespace: "default", clock: this.clock, log: silentLogger });
    try {
      return await use(store);
    } finally {
      await store.close();
    }
  }

  /** Somebody claims a job, names another, and is gone. */
  async #crash(store: Store): Promise<void> {
    const names = [{ name: "plain", concurrency: null, rate: null }];
    const wanted = {
      claimer: "gone",
      sequence: 1,
      leaseMs: 1_000,
      limit: 1,
      queues: null,
      names,
      alone: false,
    };
    const { jobs } = await store.claim(wanted);
    assert.deepEqual(
      jobs.map(({ id }) => id),
      ["active"],
    );
    await store.report({
      claimer: "gone",
      reports: [{ id: "active", token: 1, lines: ["x"], progress: "1" }],
    });
    await store.putNode({
      ...{ id: "ghost", host: "h", pid: 1, version: "1", roles: ["worker"], queues: null, names: ["plain"] },
      ...{ concurrency: 1, active: 0, ttlMs: 1_000 },
    });
    const grants = await store.acquirePartitions({ owner: "gone", leaseMs: 1_000, partitions: 2, want: 2 });
    const [due] = await Promise.all(
      grants.map(async ({ partition, epoch }) => {
        const { jobs: some } = await store.partitionDue({ partition, aheadMs: 0, limit: 10, after: null });
        const name = some.map(({ id, version }) => ({ id, version }));
        const parts = { owner: "gone", partition, epoch, settled: [], mark: null, name, aheadMs: 0 };
        return store.checkpoint(parts);
      }),
    );
    assert.equal(due?.outcome, "written");
    await store.record({
      entries: [{ id: "e", actor: "a", action: "pause", target: "queue:q", reason: null, outcome: null }],
    });
  }

  /** What is healthy goes on. */
  async live(): Promise<void> {
    const app = this.app();
    const healthy = ["h-plain", "h-keyed", "h-rated", "h-sent"];
    for (const name of ["plain", "keyed", "rated", "sent"])
      await app.enqueue(name, "healthy", { id: `h-${name}`, tags: ["a"] });
    await app.schedule("healthy", { every: "10s" }, "plain", 1, {});
    await app.start();
    await app.enqueue("plain", 1, { id: "h-after", after: [{ id: "h-plain" }] });
    this.calls = 0;
    await app.advance(45_000);
    assert.ok(this.calls < mostCalls, `a loop spins: ${this.calls} calls of the store in 45 s`);
    const found = await Promise.all([...healthy, "h-after"].map((id) => app.get(id)));
    assert.deepEqual(
      found.map((job) => job?.state),
      ["succeeded", "succeeded", "succeeded", "succeeded", "succeeded"],
    );
    const dispatched = [...this.ran, ...this.broker.ids];
    for (const id of [...healthy, "h-after"])
      assert.equal(dispatched.filter((one) => one === id).length, 1, id);
    const fired = this.ran.filter((id) => id.startsWith("{healthy}@")).length;
    assert.ok(fired >= 4, `the healthy schedule fired ${fired} times`);
    await this.#ask(app);
    await this.within((store) => askStore(store, this.clock));
    await app[Symbol.asyncDispose]();
    assert.deepEqual(this.errors.filter(isUnexpected), []);
  }

  /** The victims that no question finds any more. */
  async missing(): Promise<readonly string[]> {
    const app = this.app();
    const gone: string[] = [];
    for (const id of victims) if ((await app.get(id)) === null) gone.push(id);
    await app[Symbol.asyncDispose]();
    return gone;
  }

  async #ask(app: TestEscapement): Promise<void> {
    const { jobs } = await app.list({}, { limit: 1_000 });
    await app.list({ tags: ["a"] }, { limit: 10 });
    for (const { id } of jobs) {
      if (id === "" || id.startsWith("{")) continue;
      await app.get(id);
      await app.trail(id);
      await app.diagnose(id);
    }
    await app.countBy(["queue", "name", "state"]);
    await Promise.all([app.schedules(), app.nodes(), app.queues(), app.health()]);
    await app.occurrences("victim", { from: new Date(0), to: new Date(8e15) });
    for (const id of ["waiting", "ended", "active"])
      await app.explain(id).catch((error: unknown) => {
        if (!(error instanceof EscapementError && error.code === "not-found")) throw error;
      });
    await app.cancel("waiting");
    await app.redrive("active");
  }
}

async function askStore(store: Store, clock: VirtualClock): Promise<void> {
  await store.scan({ filter: {}, order: "newest", limit: 10, lookAt: 1_000, cursor: null });
  await store.depths();
  await store.audit({ filter: {}, limit: 10, cursor: null });
  const [since, until] = [new Date(clock.now() - 3_600_000), new Date(clock.now() + 1_000)];
  for (const by of [null, "queue", "name"] as const)
    await store.history({ step: "minute", since, until, by, limit: 100 });
  await store.usage({ queue: "victims", concurrencyKey: "keyed 1", rateKey: "rated 1" });
  await store.partitions();
}

/** A schedule that cannot be planned is told of. */
function isUnexpected({ error, during }: { readonly error: unknown; readonly during: string }): boolean {
  return !(during === 'planning schedule "victim"' && error instanceof EscapementError);
}
