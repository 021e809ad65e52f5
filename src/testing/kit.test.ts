import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { defineJob } from "../definition.ts";
import { silentLogger } from "../log.ts";
import { memory } from "../stores/memory/index.ts";
import { createTestEscapement } from "./kit.ts";
import { VirtualClock } from "./virtual-clock.ts";

const log = silentLogger;
const day = 86_400_000;

/** A job that keeps the times of its runs, and fails at the first. */
function newReminder() {
  const runs: number[] = [];
  const job = defineJob<null>({
    name: "remind",
    retry: { backoff: { delay: "30s", jitter: 0 } },
    run: ({ job: { attempt, runAt } }) => {
      if (attempt === 1) throw new Error("no mail server");
      runs.push(runAt.getTime());
    },
  });
  return { job, runs };
}

describe("the kit under fake timers", () => {
  async function remindsInTime(): Promise<void> {
    const { job, runs } = newReminder();
    await using app = await createTestEscapement({ jobs: [job], log });
    const since = app.clock.now();
    await app.enqueue(job, null, { delay: "1h" });
    await app.advance("59m");
    assert.deepEqual(runs, []);
    await app.advance("2m");
    assert.deepEqual(runs, [since + 3_630_000]);
    await app.runUntilIdle();
  }

  test("of node:test", async () => {
    mock.timers.enable();
    try {
      await remindsInTime();
    } finally {
      mock.timers.reset();
    }
  });

  test("that replace every global that tells time or waits, as those of vitest, jest and sinon do", async () => {
    const names = ["setTimeout", "setInterval", "setImmediate", "Date"] as const;
    const kept = names.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const);
    const now = mock.method(performance, "now", () => 0);
    const never = (): object => ({ unref() {}, ref() {} });
    for (const name of names.slice(0, 3))
      Object.defineProperty(globalThis, name, { value: never, configurable: true, writable: true });
    const stopped = class extends Date {
      static override now = (): number => 0;
    };
    Object.defineProperty(globalThis, "Date", { value: stopped, configurable: true, writable: true });
    try {
      await remindsInTime();
    } finally {
      now.mock.restore();
      for (const [name, descriptor] of kept)
        if (descriptor !== undefined) Object.defineProperty(globalThis, name, descriptor);
    }
  });
});

describe("a long advance", () => {
  test("skips the time in which nothing can happen, and runs what is due at its own moment", async () => {
    const { job, runs } = newReminder();
    await using app = await createTestEscapement({ jobs: [job], log });
    const since = app.clock.now();
    await app.enqueue(job, null, { delay: "29d" });
    let reads = 0;
    const { settle } = app.clock;
    app.clock.settle = () => {
      reads += 1;
      return settle.call(app.clock);
    };
    await app.advance("30d");
    assert.deepEqual(runs, [since + 29 * day + 30_000]);
    assert.equal(app.clock.now(), since + 30 * day);
    assert(reads < 1_000, `it took ${reads} steps`);
    assert.equal((await app.nodes())[0]?.alive, true);
  });

  test("fires an hourly schedule for a month, each at its hour", async () => {
    const fired: number[] = [];
    const job = defineJob<null>({ name: "tick", run: () => void fired.push(app.clock.now()) });
    await using app = await createTestEscapement({ jobs: [job], log });
    const since = app.clock.now();
    await app.schedule("hourly", { cron: "0 * * * *" }, job, null);
    await app.advance("30d");
    assert.equal(fired.length, 720);
    assert(fired.every((at, n) => at === since + (n + 1) * 3_600_000));
  });

  test("minds expiry, rate limits, timers of the test, and who waits for a result", async () => {
    const ran: number[] = [];
    const limited = defineJob<null>({
      name: "limited",
      rate: { key: () => "one", limit: 1, per: "1h" },
      run: () => void ran.push(app.clock.now()),
    });
    await using app = await createTestEscapement({ jobs: [limited], log });
    const since = app.clock.now();
    for (let n = 0; n < 3; n++) await app.enqueue(limited, null);
    const { id } = await app.enqueue(defineJob<null>({ name: "unhandled" }), null, { expireIn: "5h" });
    const seen: number[] = [];
    app.clock.after(90_000, () => seen.push(app.clock.now() - since));
    const late = assert.rejects(app.result(id, { timeout: "10m" }), { code: "result-timeout" });
    app.on("reaped", () => seen.push(app.clock.now() - since));
    await app.advance("20h");
    await late;
    assert.deepEqual(
      ran.map((at) => at - since),
      [0, 3_600_000, 7_200_000],
    );
    assert.equal(seen[0], 90_000);
    assert.equal(seen.length, 2);
    const reapedMs = (seen[1] ?? 0) - 5 * 3_600_000;
    assert(reapedMs >= 0 && reapedMs <= 2_000, `reaped ${reapedMs} ms after it expired`);
  });

  test("skips nothing that another app on the same clock has to do", async () => {
    const clock = new VirtualClock();
    const store = memory();
    const ran: number[] = [];
    const job = defineJob<null>({ name: "work", run: () => void ran.push(clock.now()) });
    await using client = await createTestEscapement({ store, clock, log });
    await using worker = await createTestEscapement({ store, clock, jobs: [job], log });
    const since = clock.now();
    await worker.enqueue(job, null, { delay: "10m" });
    await client.advance("20m");
    assert.deepEqual(ran, [since + 600_000]);
  });

  test("calls that overlap move time one after the other, also with the end of the app", async () => {
    const { job } = newReminder();
    const failing = async (): Promise<void> => {
      await using app = await createTestEscapement({ jobs: [job], log });
      const { id } = await app.enqueue(job, null, { attempts: 1 });
      const since = app.clock.now();
      await Promise.all([app.advance("1m"), app.advance("1m")]);
      assert.equal(app.clock.now(), since + 120_000);
      const again = await app.enqueue(job, null, { attempts: 1 });
      await Promise.all([app.result(again.id), app.advance("400d")]);
      assert.fail(id);
    };
    await assert.rejects(failing, { code: "job-failed" });
  });
});
