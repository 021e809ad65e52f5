import { Escapement } from "../app/escapement.ts";
import { type Duration, parseDuration } from "../duration.ts";
import type { Runtime } from "../runtime.ts";
import type { EscapementOptions } from "../settings.ts";
import { memory } from "../stores/memory/index.ts";
import { seededRandom } from "./seeded-random.ts";
import { VirtualClock } from "./virtual-clock.ts";

/** How long `runUntilIdle` waits, in real time, for handlers that do real work. */
const patienceMs = 30_000;
/** How long `advance` does. */
const lingerMs = 100;

/**
 * An app on a clock of its own, for tests: no server, no sleeping, and time moves only when it is told to.
 * Ids and jitter are the same in every run.
 */
export class TestEscapement extends Escapement {
  readonly clock: VirtualClock;

  constructor(options: EscapementOptions, clock: VirtualClock) {
    super({ store: memory(), ...options }, testRuntime(clock));
    this.clock = clock;
  }

  /**
   * Moves time forward; whatever becomes due on the way runs at its own moment. Handlers that do real work get a moment of real time
   * to finish; those that wait for time to move do not hold it up.
   */
  async advance(span: Duration): Promise<void> {
    await this.clock.settle();
    await this.clock.advance(parseDuration(span, "the span to advance by"));
    await this.#untilIdle(lingerMs);
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
    let stopped = false;
    const stopping = this.stop({ timeout: 0 }).finally(() => {
      stopped = true;
    });
    while (!stopped) await this.clock.advance(1_000);
    await stopping;
  }

  /** How many handlers are at work, once there are none, or after so much real time. */
  async #untilIdle(realMs: number): Promise<number> {
    const deadline = performance.now() + realMs;
    for (;;) {
      await this.clock.settle();
      const active = await this.count({ states: ["active"] });
      if (active === 0 || performance.now() > deadline) return active;
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

function testRuntime(clock: VirtualClock): Runtime {
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
