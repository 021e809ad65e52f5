import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { defineJob, EscapementError } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { seededRandom } from "../../src/testing/seeded-random.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { ScriptedTransport } from "../behaviour/scripted-transport.ts";
import { type Column, type Vandal, type VandalKind, vandals } from "./sql-vandals.ts";

const seed = Number(process.env["ESCAPEMENT_SEED"] ?? 1);

const garbage: Readonly<Record<Column["kind"], readonly (string | number)[]>> = {
  text: ["{not json", "nonsense", "5", '{"a":[]}', "null", ""],
  number: [
    -1,
    Number.MIN_SAFE_INTEGER,
    -7_000_000,
    0,
    3_000_000_000,
    9e15,
    Number.MAX_SAFE_INTEGER,
    2_147_483_647,
  ],
  flag: [0, 1],
  texts: ["{not json"],
};

/** One app's life beside rows that somebody else has written to. */
class Scene {
  readonly clock = new VirtualClock();
  readonly vandal: Vandal;
  readonly ran: string[] = [];
  readonly errors: { readonly error: unknown; readonly during: string }[] = [];

  constructor(vandal: Vandal) {
    this.vandal = vandal;
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
    ];
    const app = new TestEscapement({ store: this.vandal.store, jobs, log: silentLogger }, this.clock);
    app.on("error", (event) => this.errors.push(event));
    return app;
  }

  /** Jobs in every state, a schedule, a queue, a node that is gone. */
  async prepare(): Promise<void> {
    const app = this.app();
    await app.start();
    await app.enqueue("plain", 1, { id: "ended", tags: ["a"] });
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
    await idle.configureQueue("victims", { concurrency: 1 });
    await idle.schedule("victim", { every: "10s" }, "plain", 1);
    await idle.enqueue("plain", 1, { id: "active", priority: 100, attempts: 3 });
    await this.#crash();
    await idle[Symbol.asyncDispose]();
  }

  /** Somebody claims a job and is gone. */
  async #crash(): Promise<void> {
    const store = await this.vandal.store.open({
      namespace: "default",
      clock: this.clock,
      log: silentLogger,
    });
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
    await store.close();
  }

  /** What is healthy goes on. */
  async live(): Promise<void> {
    const app = this.app();
    const healthy = ["h-plain", "h-keyed", "h-rated"];
    for (const name of ["plain", "keyed", "rated"])
      await app.enqueue(name, "healthy", { id: `h-${name}`, tags: ["a"] });
    await app.schedule("healthy", { every: "10s" }, "plain", 1, {});
    await app.start();
    await app.enqueue("plain", 1, { id: "h-after", after: [{ id: "h-plain" }] });
    await app.advance(45_000);
    const found = await Promise.all([...healthy, "h-after"].map((id) => app.get(id)));
    assert.deepEqual(
      found.map((job) => job?.state),
      ["succeeded", "succeeded", "succeeded", "succeeded"],
    );
    for (const id of [...healthy, "h-after"])
      assert.equal(this.ran.filter((one) => one === id).length, 1, id);
    const fired = this.ran.filter((id) => id.startsWith("{healthy}@")).length;
    assert.ok(fired >= 4, `the healthy schedule fired ${fired} times`);
    await this.#ask(app);
    await app[Symbol.asyncDispose]();
    assert.deepEqual(this.errors.filter(isUnexpected), []);
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

/** A schedule that cannot be planned is told of. */
function isUnexpected({ error, during }: { readonly error: unknown; readonly during: string }): boolean {
  return !(during === 'planning schedule "victim"' && error instanceof EscapementError);
}

function fuzz({ name, skip, isLocal, open }: VandalKind): void {
  describe(`rows that somebody else has written to (${name})`, { skip }, () => {
    before(() => {
      // Time is virtual, but each poll in it is a real trip.
      process.env["ESCAPEMENT_POLL"] = "10s";
    });
    after(() => {
      delete process.env["ESCAPEMENT_POLL"];
    });
    test("jobs with tags that are no JSON run, and so do their neighbours", async () => {
      const ran = await ranBeside(open, "tags", "{not json");
      assert.ok(ran.includes("rated"));
    });

    test("jobs with an unknown delivery guarantee are not dispatched, and their neighbours are", async (t) => {
      const ran = await ranBeside(open, "delivery", "nonsense");
      if (ran.length === 0) return t.skip("the column takes known words only");
      assert.ok(!ran.includes("rated"));
    });

    test("a relay publishes beside jobs with an unknown delivery guarantee, and ends those", async (t) => {
      const vandal = await open();
      const clock = new VirtualClock();
      const broker = new ScriptedTransport(clock);
      const pay = defineJob<unknown>({ name: "pay", route: broker.route() });
      const relay = { partitions: 2 };
      const app = new TestEscapement({ store: vandal.store, jobs: [pay], relay, log: silentLogger }, clock);
      await app.enqueue(pay, 1, { id: "victim" });
      const column = (await vandal.columns()).find(
        ({ table, column: own }) => /jobs$/.test(table) && own === "delivery",
      );
      assert(column !== undefined);
      const isWritten = await isTaken(vandal, column, "nonsense");
      if (isWritten) {
        await app.enqueue(pay, 1, { id: "healthy" });
        await app.start({ roles: ["relay"] });
        await clock.advance(5_000);
        assert.deepEqual(broker.ids, ["healthy"]);
        assert.equal((await app.get("victim"))?.state, "dead");
        assert.equal((await app.get("healthy"))?.state, "succeeded");
      } else t.skip("the column takes known words only");
      await app[Symbol.asyncDispose]();
      await vandal.close();
    });

    test(`whatever stands in one column, what is healthy goes on (seed ${seed})`, async () => {
      const random = seededRandom(seed);
      const all = await columnsOf(open);
      // Over a network a case takes a second, so each seed has some of them.
      const columns = isLocal ? all : all.filter(() => random() < 30 / all.length);
      assert.ok(all.length > 100, `only ${all.length} columns`);
      const failures: string[] = [];
      for (const column of columns) {
        const values = garbage[column.kind];
        const value = values[Math.floor(random() * values.length)] ?? "";
        const failure = await tryColumn(open, column, value);
        if (failure !== null)
          failures.push(`${column.table}.${column.column} = ${JSON.stringify(value)}: ${failure}`);
      }
      assert.deepEqual(failures, []);
    });
  });
}

/** The ids of what was dispatched with this in a column of all jobs but the healthy; none where the column does not take it. */
async function ranBeside(open: VandalKind["open"], name: string, value: string): Promise<readonly string[]> {
  const vandal = await open();
  try {
    const scene = new Scene(vandal);
    await scene.prepare();
    const column = (await vandal.columns()).find(
      ({ table, column: own }) => /jobs$/.test(table) && own === name,
    );
    assert(column !== undefined);
    if (!(await isTaken(vandal, column, value))) return [];
    await scene.live();
    return scene.ran;
  } finally {
    await vandal.close();
  }
}

function isTaken(vandal: Vandal, column: Column, value: string | number): Promise<boolean> {
  return vandal.write(column, value).then(
    () => true,
    () => false,
  );
}

async function columnsOf(open: VandalKind["open"]): Promise<readonly Column[]> {
  const vandal = await open();
  try {
    await new Scene(vandal).prepare();
    return await vandal.columns();
  } finally {
    await vandal.close();
  }
}

/** Null where all went well, or the column does not take the value. */
async function tryColumn(
  open: VandalKind["open"],
  column: Column,
  value: string | number,
): Promise<string | null> {
  const vandal = await open();
  try {
    const scene = new Scene(vandal);
    await scene.prepare();
    if (await isTaken(vandal, column, value)) await scene.live();
    return null;
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } finally {
    await vandal.close();
  }
}

const only = process.env["ESCAPEMENT_FUZZ_STORE"];
for (const kind of vandals) if (only === undefined || only === kind.name) fuzz(kind);
