import { setTimeout as delay } from "node:timers/promises";
import { createEscapement, defineJob, type Escapement, type Route } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { Store } from "../../src/store/store.ts";
import { BatchingTransport } from "../../src/transports/batching.ts";
import { AuditFailure, checkStates, Dispatches, expect, within } from "../audit.ts";
import type { Place } from "../beds/bed.ts";
import { counted } from "../counted.ts";
import type { RelayPlan } from "./plan.ts";
import type { Destination } from "./targets/target.ts";

const deadlineMs = 300_000;
const chunk = 20_000;
/** So many go before each measurement: connections are open then and statements prepared, as those of the raw loops are. */
const warmUps = 500;
/** What has been due for more than a second is a backlog to the relay. */
const becomesBacklogMs = 1_200;

/** A store, a destination and a relay between them, with its default settings. */
export class RelayScene implements AsyncDisposable {
  readonly app: Escapement;
  readonly destination: Destination;
  readonly #place: Place;
  readonly #task;
  readonly #warm;
  readonly #calls: (verb: keyof Store) => number;
  readonly #publishes: () => number;
  readonly #errors: unknown[] = [];
  #retries = 0;
  #settled = 0;
  #expected: string[] = [];
  #pending = 0;
  #done = 0;
  #last = Promise.withResolvers<void>();

  static async open({ bed, durability }: RelayPlan, destination: Destination): Promise<RelayScene> {
    return new RelayScene(await bed.open(durability), destination);
  }

  constructor(place: Place, destination: Destination) {
    const { store, calls } = counted(place.store);
    const { route, publishes } = countedRoute(destination.route);
    this.destination = destination;
    this.#place = place;
    this.#calls = calls;
    this.#publishes = publishes;
    this.#task = defineJob<{ n: number }>({ name: "task", queue: "tasks", route });
    this.#warm = defineJob<{ n: number }>({ name: "warm", queue: "warm", route });
    this.app = createEscapement({ store, jobs: [this.#task, this.#warm], log: silentLogger });
    this.app.on("succeeded", () => {
      this.#settled += 1;
      if (this.#settled === this.#expected.length) this.#last.resolve();
    });
    this.app.on("dispatchRetry", () => {
      this.#retries += 1;
    });
    this.app.on("error", ({ error }) => this.#errors.push(error));
  }

  /** Enqueues jobs that are due much later, spread over all slots as their ids would have it. */
  async addPending(count: number): Promise<void> {
    const seeds = Math.min(1_000, count);
    const copies = Math.floor(count / seeds) - 1;
    const items = Array.from({ length: seeds }, (_, n) => ({ input: { n }, id: `later-${n}` }));
    await this.app.enqueueMany(
      this.#task,
      items.map((item) => ({ ...item, delay: "24h" })),
    );
    if (copies > 0)
      await this.#place.multiply(
        items.map(({ id }) => id),
        copies,
      );
    this.#pending = seeds * (copies + 1);
  }

  async start(): Promise<void> {
    await this.app.start({ roles: ["relay"] });
    await this.enqueue("warm", warmUps);
    await this.settled();
  }

  /** Enqueues jobs of one name, due now or as `runAt` says, whose settling is then waited for. Returns how long that took. */
  async enqueue(name: "task" | "warm", count: number, runAt?: (n: number) => Date): Promise<number> {
    const ids = Array.from({ length: count }, (_, n) => `${name}-${this.#done}-${n}`);
    this.#last = Promise.withResolvers();
    this.#expected = ids;
    this.#settled = 0;
    this.#done += count;
    const since = performance.now();
    for (let start = 0; start < count; start += chunk) {
      const items = ids.slice(start, start + chunk).map((id, n) => {
        const place = start + n;
        return { id, input: { n: place }, ...(runAt === undefined ? {} : { runAt: runAt(place) }) };
      });
      await this.app.enqueueMany(name === "task" ? this.#task : this.#warm, items);
    }
    return performance.now() - since;
  }

  /** Enqueues jobs that wait for {@link release}, and waits until they are a backlog. */
  async preload(count: number): Promise<number> {
    await this.app.pauseQueue("tasks");
    const ms = await this.enqueue("task", count);
    await delay(becomesBacklogMs);
    return ms;
  }

  /** Lets go what was preloaded, and waits until the last is settled in the store. */
  async release(): Promise<void> {
    await this.app.resumeQueue("tasks");
    await this.settled();
  }

  async settled(): Promise<void> {
    await within(deadlineMs, "the firing", this.#last.promise);
  }

  get counts(): { readonly checkpoints: number; readonly reads: number; readonly publishes: number } {
    const [checkpoints, reads] = [this.#calls("checkpoint"), this.#calls("partitionDue")];
    return { checkpoints, reads, publishes: this.#publishes() };
  }

  /** At the destination, outside of the store: each of the last jobs once, and nothing that nobody enqueued. */
  async audit(): Promise<void> {
    if (this.#errors.length > 0)
      throw new AuditFailure(`${this.#errors.length} errors, first ${this.#errors[0]}`);
    expect(this.#retries, 0, "publishes that had to be repeated");
    const arrivals = new Dispatches();
    const all = await this.destination.arrived();
    expect(all.length, this.#done, "messages that arrived");
    const last = new Set(this.#expected);
    for (const id of all) if (last.has(id)) arrivals.add(id);
    arrivals.check(this.#expected);
    expect(new Set(all).size, all.length, "different messages that arrived");
    await checkStates(this.app, { succeeded: this.#done, waiting: this.#pending });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app.stop();
    await this.#place[Symbol.asyncDispose]();
    await this.destination[Symbol.asyncDispose]();
  }
}

/** The same route, with a count of how often its broker is called. */
function countedRoute(route: Route): { route: Route; publishes: () => number } {
  const { transport } = route;
  let publishes = 0;
  let batching: BatchingTransport | null = null;
  return {
    publishes: () => batching?.batches ?? publishes,
    route: {
      ...route,
      transport: {
        kind: transport.kind,
        address: transport.address,
        async open(context) {
          const open = await transport.open(context);
          if (open instanceof BatchingTransport) batching = open;
          return {
            publish(messages, options) {
              publishes += 1;
              return open.publish(messages, options);
            },
            close: () => open.close(),
          };
        },
      },
    },
  };
}
