import { systemClock } from "../src/clock.ts";
import { createEscapement, defineJob, type Escapement } from "../src/index.ts";
import { consoleLogger } from "../src/log.ts";
import { systemRuntime } from "../src/runtime/runtime.ts";
import type { Finish } from "../src/store/claims.ts";
import type { Store } from "../src/store/store.ts";
import { checkStates, Dispatches, expect } from "./audit.ts";
import type { Place } from "./beds/bed.ts";
import { compare, type Finding, type Plan, type Run, type Scenario, series } from "./scenario.ts";
import { median } from "./statistics.ts";

const batch = 100;
/** Steps of a run: the first finds nothing to finish and the last nothing to claim, the median tells of those between. */
const steps = 30;
const keyLimit = 1;

const work = defineJob<{ n: number }>({ name: "work" });
const other = defineJob<{ n: number }>({ name: "other" });
const keyed = defineJob<{ n: number }>({ name: "keyed", concurrency: { key: () => "one", limit: keyLimit } });

/** A backlog that a claim must pass by; its first job is enqueued, the others are copies of it. */
interface Backlog {
  readonly what: string;
  enqueue(app: Escapement): Promise<{ readonly id: string }>;
  /** Takes the key, so that the backlog behind it may not go. */
  readonly saturated: boolean;
}

const hourMs = 3_600_000;
const due = (): { readonly runAt: Date } => ({ runAt: new Date(Date.now() - hourMs) });

const backlogs: readonly Backlog[] = [
  {
    what: "due later",
    enqueue: (app) => app.enqueue(work, { n: 0 }, { delay: "24h" }),
    saturated: false,
  },
  {
    what: "due, of a name that the worker does not handle",
    enqueue: (app) => app.enqueue(other, { n: 0 }, due()),
    saturated: false,
  },
  {
    what: "due, behind one saturated concurrency key",
    enqueue: (app) => app.enqueue(keyed, { n: 0 }, due()),
    saturated: true,
  },
];

/**
 * What a step (finish 100, claim 100) costs beside a large backlog, against beside a small one. Always without waiting for
 * the disk: a sync takes as long whatever the backlog, and would hide what is asked for.
 */
export const claimCost: Scenario = {
  name: "claim-cost",
  async run(plan) {
    const findings: Finding[] = [];
    for (const backlog of backlogs) findings.push(await measure(plan, backlog));
    return findings;
  },
};

async function measure(plan: Plan, backlog: Backlog): Promise<Finding> {
  await using small = await Scene.open(plan, backlog, plan.smallBacklog);
  await using large = await Scene.open(plan, backlog, plan.backlog);
  const runs: { readonly small: Run; readonly large: Run }[] = [];
  for (let round = 0; round <= plan.runs; round += 1) {
    const run = await takeTurns(small, large);
    if (round > 0) runs.push(run);
    plan.progress(
      `${round === 0 ? "warm-up" : `run ${round}`}: ${run.small.value.toPrecision(4)} small, ${run.large.value.toPrecision(4)} large`,
    );
  }
  return compare({
    scenario: "claim-cost",
    what: `a step of ${batch} beside ${plan.backlog} jobs ${backlog.what} (always with durability normal)`,
    unit: "ms",
    ours: series(
      `${plan.backlog} jobs`,
      runs.map((run) => run.large),
    ),
    base: series(
      `${plan.smallBacklog} jobs`,
      runs.map((run) => run.small),
    ),
    goal: { ratio: plan.bed.goals.claimCost, is: "at most" },
  });
}

/** Step by step, because a step is so short that a neighbour's work would fall on one side only. */
async function takeTurns(small: Scene, large: Scene): Promise<{ small: Run; large: Run }> {
  const scenes = { small, large };
  for (const scene of Object.values(scenes)) await scene.fill();
  for (let step = 0; step <= steps; step += 1) {
    for (const scene of Object.values(scenes)) await scene.step();
  }
  return { small: await small.audited(), large: await large.audited() };
}

/** A store with a backlog, and a claimer that works beside it. */
class Scene implements AsyncDisposable {
  readonly #place: Place;
  readonly #app: Escapement;
  readonly #store: Store;
  readonly #size: number;
  readonly #claimer = systemRuntime.newId();
  #sequence = 0;
  #held = 0;
  #done = 0;
  #ids: readonly string[] = [];
  #dispatches = new Dispatches();
  #finishes: readonly Finish[] = [];
  #times: number[] = [];

  static async open({ bed, progress }: Plan, backlog: Backlog, size: number): Promise<Scene> {
    const place = await bed.open("normal");
    const app = createEscapement({ store: place.store, jobs: [work, other, keyed] });
    const { id } = await backlog.enqueue(app);
    const since = performance.now();
    await place.multiply([id], size - 1);
    progress(`${size} jobs ${backlog.what}: built in ${Math.round(performance.now() - since)} ms`);
    const store = await place.store.open({ namespace: "default", clock: systemClock, log: consoleLogger });
    const scene = new Scene(place, app, store, size);
    await checkStates(app, { waiting: size });
    if (backlog.saturated) await scene.#saturate();
    return scene;
  }

  constructor(place: Place, app: Escapement, store: Store, size: number) {
    this.#place = place;
    this.#app = app;
    this.#store = store;
    this.#size = size;
  }

  /** Another claimer takes as many jobs as the key lets go. */
  async #saturate(): Promise<void> {
    const names = [{ name: "keyed", concurrency: keyLimit, rate: null }];
    const { jobs } = await this.#store.claim({ ...this.#params(), claimer: "saturating", names });
    expect(jobs.length, keyLimit, "jobs that the key lets go");
    this.#held = jobs.length;
  }

  /** Enqueues what the steps of a run will claim. */
  async fill(): Promise<void> {
    const receipts = await this.#app.enqueueMany(
      work,
      Array.from({ length: steps * batch }, (_, n) => ({ input: { n } })),
    );
    this.#ids = receipts.map(({ id }) => id);
    this.#dispatches = new Dispatches();
    this.#times = [];
  }

  async step(): Promise<void> {
    const params = { finishes: this.#finishes, claim: this.#params() };
    const since = performance.now();
    const { finished, claimed } = await this.#store.step(params);
    this.#times.push(performance.now() - since);
    const written = finished.filter(({ outcome }) => outcome === "written").length;
    expect(written, params.finishes.length, "outcomes written");
    for (const { id } of claimed.jobs) this.#dispatches.add(id);
    this.#finishes = claimed.jobs.map(({ id, token }) => ({
      id,
      token,
      outcome: { kind: "succeed", result: null },
    }));
  }

  async audited(): Promise<Run> {
    this.#dispatches.check(this.#ids);
    this.#done += this.#ids.length;
    await this.#checkStates();
    return {
      value: median(this.#times),
      fastest: Math.min(...this.#times),
      slowest: Math.max(...this.#times),
    };
  }

  async #checkStates(): Promise<void> {
    const counts = new Map((await this.#app.countBy(["state"])).map(({ state, count }) => [state, count]));
    expect(counts.get("succeeded") ?? 0, this.#done, "jobs that are succeeded");
    expect(counts.get("active") ?? 0, this.#held, "jobs that are active");
    expect(counts.get("waiting") ?? 0, this.#size - this.#held, "jobs that are waiting");
    expect(counts.size, this.#held === 0 ? 2 : 3, "states that jobs are in");
  }

  #params(): Parameters<Store["claim"]>[0] {
    this.#sequence += 1;
    return {
      claimer: this.#claimer,
      sequence: this.#sequence,
      leaseMs: 600_000,
      limit: batch,
      queues: null,
      names: [
        { name: "work", concurrency: null, rate: null },
        { name: "keyed", concurrency: keyLimit, rate: null },
      ],
      alone: false,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store.close();
    await this.#app.stop();
    await this.#place[Symbol.asyncDispose]();
  }
}
