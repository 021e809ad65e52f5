import { silentLogger } from "../../../src/log.ts";
import type { EscapementOptions } from "../../../src/settings.ts";
import { isTerminal } from "../../../src/state.ts";
import type { Store } from "../../../src/store/store.ts";
import { memory } from "../../../src/stores/memory/index.ts";
import { Chance } from "../../../src/testing/chance.ts";
import { VirtualClock } from "../../../src/testing/virtual-clock.ts";
import type { Violation } from "./history.ts";
import type { RelayBug } from "./relay-bugs.ts";
import { RelayCluster } from "./relay-cluster.ts";
import { RelayHistory } from "./relay-history.ts";
import { checkRelay } from "./relay-invariants.ts";
import { RelayWitness } from "./relay-witness.ts";
import { storeClock } from "./simulated-process.ts";
import { type CrashPoint, Weather } from "./weather.ts";

export interface RelaySimulationResult {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly trace: readonly string[];
  readonly climate: string;
  readonly awaits: number;
  readonly counts: Readonly<Record<string, number>>;
}

const namespace = "relay simulation";
const stormLeases = 5;
const quietLeases = 80;
/** How long after a job was enqueued something is done to it, at the most. */
const lastCallMs = 9_000;

/** Runs one seed of a cluster of relays, from the first job to the last word of the invariants. */
export async function simulateRelay(
  seed: number,
  { bug = null, crashPoint = null }: { bug?: RelayBug | null; crashPoint?: CrashPoint | null } = {},
): Promise<RelaySimulationResult> {
  const chance = new Chance(seed, "relay settings");
  const world = new VirtualClock();
  const history = new RelayHistory(world);
  const leaseMs = chance.pick([3_000, 6_000, 10_000]);
  const partitions = chance.pick([1, 2, 4]);
  // A number of its own, so that each other choice of a seed stays as it is.
  const later = new Chance(seed, "more partitions");
  const times = later.pick([1, 1, 2, 3]);
  const more =
    times === 1
      ? null
      : { partitions: partitions * times, afterMs: later.real(0, stormLeases - 2) * leaseMs };
  const inFlight = times * partitions * chance.pick([1, 4, 50]);
  const settings: Omit<EscapementOptions, "store" | "jobs" | "log"> = {
    namespace,
    lease: leaseMs,
    heartbeat: leaseMs / 3,
    poll: chance.pick([500, 1_000, 2_000]),
    // A read brings five times as many, so that some seeds see backlogs of several pages.
    batch: chance.pick([1, 2, 100]),
    relay: { partitions, inFlight },
    acceptWeakDurability: true,
  };
  const weather = new Weather(seed, leaseMs, crashPoint);
  const store = memory({ clock: storeClock(world) });
  const raw = await store.open({ namespace, clock: storeClock(world), log: silentLogger });
  const witness = new RelayWitness(history, inFlight / partitions, [partitions, partitions * times]);
  const nodes = chance.pick([1, 2, 2, 3]);
  const dispatchTimeoutMs = chance.pick([0.5, 2, 10]) * leaseMs;
  history.tell("world", `seed ${seed}: ${weather.climate.name}, ${nodes} nodes, ${JSON.stringify(settings)}`);
  const cluster = new RelayCluster({
    seed,
    world,
    history,
    witness,
    weather,
    store,
    settings,
    dispatchTimeoutMs,
    nodes,
    more,
    bug,
  });
  const acknowledged = planClient(cluster, world, history, seed, leaseMs * (stormLeases - 1));
  cluster.start();
  await world.advance(leaseMs * stormLeases);
  weather.quiet = true;
  history.tell("world", "is quiet from now on");
  // The last that a client does may come a while after the storm.
  await world.advance(lastCallMs);
  for (let lease = 0; lease < quietLeases && !(await isDone(raw)); lease += 1) {
    if (history.violations.length > 0) break;
    await world.advance(leaseMs);
  }
  let stopped = false;
  void cluster.stop().then(() => {
    stopped = true;
  });
  for (let turn = 0; turn < 20 && !stopped; turn += 1) await world.advance(leaseMs);
  if (!stopped) history.violate("a stop comes to its end", "a node has not stopped within 20 leases");
  const { jobs } = await raw.list({ filter: {}, limit: 10_000, order: "oldest", cursor: null });
  checkRelay(history, jobs, acknowledged);
  const counts: Record<string, number> = {
    jobs: jobs.length,
    arrivals: history.arrivals.length,
    takeovers: history.takeovers,
    cuts: history.cuts,
    faults: history.faults,
  };
  for (const { state } of jobs) counts[state] = (counts[state] ?? 0) + 1;
  const { violations, trace } = history;
  return { seed, violations, trace, climate: weather.climate.name, awaits: weather.awaits, counts };
}

async function isDone(store: Store): Promise<boolean> {
  const counts = await store.count({ filter: {}, by: ["state"] });
  return counts.every(({ state }) => state !== undefined && isTerminal(state));
}

/** What clients do: enqueue for now and for later, below the mark too, cancel, edit and redrive. */
function planClient(
  cluster: RelayCluster,
  world: VirtualClock,
  history: RelayHistory,
  seed: number,
  untilMs: number,
): ReadonlySet<string> {
  const chance = new Chance(seed, "relay workload");
  const acknowledged = new Set<string>();
  const { app, definitions } = cluster.client();
  const many = chance.integer(5, 60);
  const at = (ms: number, call: () => Promise<unknown>): void =>
    void world.after(
      ms,
      () => void call().catch((error: unknown) => history.tell("client", `failed: ${error}`)),
    );
  for (let n = 0; n < many; n += 1) {
    const id = `j${n}`;
    const definition = definitions.get(chance.weighted({ least: 5, once: 3, effect: 2 }));
    if (definition === undefined) continue;
    const startMs = chance.happens(0.3) ? 0 : chance.real(0, untilMs);
    const input = chance.happens(0.05) ? "unacceptable" : n;
    const delay = chance.pick([0, 0, 1, chance.integer(0, 5_000), chance.integer(0, untilMs)]);
    const isLate = chance.happens(0.1);
    at(startMs, async () => {
      const when = isLate ? { runAt: new Date(world.now() - 3_600_000) } : { delay };
      const enqueued = await app.enqueue(definition, input as never, { id, ...when });
      if (enqueued.outcome === "added") acknowledged.add(id);
    });
    if (chance.happens(0.1)) {
      at(startMs + chance.real(0, 5_000), async () => {
        const tally = await app.cancel(id);
        if (tally.cancelled === 1) history.cancelled.set(id, world.monotonic());
      });
    }
    if (chance.happens(0.1))
      at(startMs + chance.real(0, 5_000), () => app.update(id, { input: `edited ${n}` }));
    if (chance.happens(0.1)) at(startMs + chance.real(1_000, lastCallMs), () => app.redrive(id));
  }
  return acknowledged;
}
