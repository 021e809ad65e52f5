import { Escapement } from "../app/escapement.ts";
import type { ResultOptions } from "../client/client.ts";
import type { Clock } from "../clock.ts";
import { type Duration, parseDuration } from "../duration.ts";
import type { JobRef } from "../receipt.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { EscapementOptions } from "../settings.ts";
import { type MemoryStoreFactory, memory } from "../stores/memory/index.ts";
import { seededRandom } from "./seeded-random.ts";
import { VirtualClock } from "./virtual-clock.ts";

/** How long `runUntilIdle` waits, in real time, for handlers that do real work. */
const patienceMs = 30_000;
/** How long `advance` does. */
const lingerMs = 100;
/** How long time is stepped through after something happened: each role has looked again by then. */
const stepMs = 2_000;

/** Taken when this module is loaded, so that the fake timers of a test runner do not stop the kit. */
const { setTimeout } = globalThis;
const realNow = performance.now.bind(performance);

/**
 * An app on a clock of its own, for tests: no server, no sleeping, and time moves only when it is told to.
 * Ids and jitter are the same in every run, and fake timers of the test runner change nothing.
 */
export class TestEscapement extends Escapement {
  readonly clock: VirtualClock;
  /** The store that can tell how long nothing will happen, with the owner of this app's timers; null on others. */
  readonly #idling: { readonly store: MemoryStoreFactory; readonly owner: object } | null;
  #awaited = 0;
  #moving: Promise<unknown> = Promise.resolve();
  #isOver = false;

  constructor(options: EscapementOptions, clock: VirtualClock) {
    const store = options.store ?? memory();
    const idling = isMemory(store) ? { store, owner: {} } : null;
    super({ ...options, store }, testRuntime(idling === null ? clock : clock.as(idling.owner)));
    this.clock = clock;
    this.#idling = idling;
  }

  /**
   * Moves time forward; whatever becomes due on the way runs at its own moment. Handlers that do real work get a moment of real time
   * to finish; those that wait for time to move do not hold it up. On the memory store, time in which nothing can happen is skipped, so a
   * month costs no more than what is due in it.
   */
  advance(span: Duration): Promise<void> {
    const ms = parseDuration(span, "the span to advance by");
    const turn = this.#moving.then(() => this.#advance(ms));
    this.#moving = turn.catch(() => undefined);
    return turn;
  }

  async #advance(ms: number): Promise<void> {
    const target = this.clock.monotonic() + ms;
    await this.clock.settle();
    while (!this.#isOver) {
      const leftMs = Math.max(0, target - this.clock.monotonic());
      await this.clock.advance(this.#idling === null ? leftMs : Math.min(leftMs, stepMs));
      if (this.clock.monotonic() >= target) break;
      this.clock.skip(Math.min(this.#idleMs(), target - this.clock.monotonic()));
    }
    if (!this.#isOver) await this.#untilIdle(lingerMs);
  }

  /** How long nothing can happen but that roles look for work and find none. */
  #idleMs(): number {
    // Whoever waits for a result has a deadline, which is nobody's timer but this app's.
    if (this.#idling === null || this.#awaited > 0) return 0;
    const { store, owner } = this.#idling;
    const moment = { now: this.clock.now(), monotonic: this.clock.monotonic() };
    const changeAt = store.nextChangeAt(this.settings.namespace, moment) ?? Number.POSITIVE_INFINITY;
    const othersMs = this.clock.nextTimerOfOthersMs(owner) ?? Number.POSITIVE_INFINITY;
    return Math.max(0, Math.min(changeAt - moment.now, othersMs));
  }

  override async result<Result = unknown>(job: JobRef<Result>, options: ResultOptions = {}): Promise<Result> {
    this.#awaited += 1;
    try {
      return await super.result<Result>(job, options);
    } finally {
      this.#awaited -= 1;
    }
  }

  /** Runs what is due now, and what that brings, until no handler is at work. Time stands still. */
  async runUntilIdle(): Promise<void> {
    const active = await this.#untilIdle(patienceMs);
    if (active === 0) return;
    throw new Error(
      `${active} handlers are still running after ${patienceMs} ms; if they wait for time to move, use advance`,
    );
  }

  /** Stops at once, moving time as far as that takes: a test that ends must not wait for anybody to do so. */
  override async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    let stopped = false;
    const stopping = this.stop({ timeout: 0 }).finally(() => {
      stopped = true;
    });
    while (!stopped) await this.clock.advance(1_000);
    await stopping;
  }

  /** How many handlers are at work, once there are none, or after so much real time. */
  async #untilIdle(realMs: number): Promise<number> {
    const deadline = realNow() + realMs;
    for (;;) {
      await this.clock.settle();
      const active = await this.count({ states: ["active"] });
      if (active === 0 || realNow() > deadline) return active;
      // A handler that does real I/O needs real time.
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
}

/**
 * A started app for tests, on the memory store and a virtual clock.
 *
 * @example
 * await using app = await createTestEscapement({ jobs: [reminder] });
 * await app.enqueue(reminder, { to: "ada" }, { delay: "1h" });
 * await app.advance("1h");
 * assert.equal(await app.count({ states: ["succeeded"] }), 1);
 */
export async function createTestEscapement(
  options: EscapementOptions & { readonly clock?: VirtualClock } = {},
): Promise<TestEscapement> {
  const { clock = new VirtualClock(), ...rest } = options;
  const app = new TestEscapement(rest, clock);
  await app.start();
  return app;
}

/** Nodes take their names from ids, so no two apps of a process may give out the same ones. */
let apps = 0;

function isMemory(store: unknown): store is MemoryStoreFactory {
  return typeof store === "object" && store !== null && "nextChangeAt" in store;
}

function testRuntime(clock: Clock): Runtime {
  apps += 1;
  const app = apps;
  let ids = 0;
  return {
    clock,
    random: seededRandom(app),
    newId: () => {
      ids += 1;
      return `test-${app}-${ids}`;
    },
  };
}
