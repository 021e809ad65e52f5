import { silentLogger } from "../../../src/log.ts";
import type { EscapementOptions } from "../../../src/settings.ts";
import { isTerminal } from "../../../src/state.ts";
import { memory } from "../../../src/stores/memory/index.ts";
import { Chance } from "../../../src/testing/chance.ts";
import { VirtualClock } from "../../../src/testing/virtual-clock.ts";
import { SimulatedClient } from "./client.ts";
import { Cluster } from "./cluster.ts";
import { History, type Violation } from "./history.ts";
import { checkInvariants } from "./invariants.ts";
import type { PlantedBug } from "./planted-bugs.ts";
import { storeClock } from "./simulated-process.ts";
import { StoreWitness } from "./store-witness.ts";
import { type CrashPoint, Weather } from "./weather.ts";
import { planWorkload } from "./workload.ts";

export interface SimulationResult {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly trace: readonly string[];
  readonly jobs: number;
  readonly runs: number;
  readonly faults: number;
  readonly awaits: number;
  /** Occurrences of schedules. */
  readonly planned: number;
  readonly skipped: number;
  readonly climate: string;
  readonly states: Readonly<Record<string, number>>;
}

export interface SimulationOptions {
  readonly bug?: PlantedBug | null;
  /** In place of the seed's own climate. */
  readonly crashPoint?: CrashPoint | null;
}

const namespace = "simulation";
/** How long things go wrong, in leases; the last of it sees no new jobs. */
const stormLeases = 5;
/** How long schedules go on after that: the last fault may take 3.5 leases to pass. */
const calmLeases = 5;
/** How long planners may take to catch up with what was missed, a hundred a second. */
const mostCatchUpMs = 2_000;
/** How long the quiet after the storm may take to end every job. */
const quietLeases = 60;

/** Runs one seed from the first job to the last word of the invariants. */
export async function simulate(
  seed: number,
  { bug = null, crashPoint = null }: SimulationOptions = {},
): Promise<SimulationResult> {
  const chance = new Chance(seed, "settings");
  const world = new VirtualClock();
  const history = new History(world);
  const leaseMs = chance.pick([3_000, 6_000, 10_000]);
  const settings: Omit<EscapementOptions, "store" | "jobs" | "log"> = {
    namespace,
    lease: leaseMs,
    heartbeat: leaseMs / 3,
    poll: chance.pick([500, 1_000, 2_000]),
    batch: chance.pick([1, 3, 100]),
    concurrency: chance.pick([1, 2, 4, 8]),
    attempts: 4,
    lookAhead: new Chance(seed, "look-ahead").pick([0, 30, leaseMs / 10, leaseMs]),
  };
  const weather = new Weather(seed, leaseMs, crashPoint);
  const store = memory({ clock: storeClock(world) });
  const raw = await store.open({ namespace, clock: storeClock(world), log: silentLogger });
  const witness = new StoreWitness(raw, history);
  const nodes = chance.pick([1, 2, 3, 3, 3, 4]);
  history.tell("world", `seed ${seed}: ${weather.climate.name}, ${nodes} nodes, ${JSON.stringify(settings)}`);
  const cluster = new Cluster({ seed, world, history, weather, witness, store, settings, nodes, bug });
  const { app, process } = cluster.client();
  const client = new SimulatedClient({ app, process, history, witness });
  const endMs = leaseMs * (stormLeases + calmLeases);
  client.plan(planWorkload(seed, { leaseMs, untilMs: leaseMs * (stormLeases - 1) }), endMs);
  cluster.start();
  await world.advance(leaseMs * stormLeases);
  cluster.calm();
  await world.advance(leaseMs * calmLeases - 1);
  witness.ledger.judgeLateness(world.now(), Number(settings.poll) + mostCatchUpMs);
  const done = (): boolean =>
    history.violations.length > 0 ||
    (client.isDone && [...witness.current.values()].every(({ state }) => isTerminal(state)));
  for (let lease = 0; lease < quietLeases && !done(); lease += 1) await world.advance(leaseMs);
  await stopAll(cluster, world, history, leaseMs);
  const effects = [...store.effects(namespace).keys(), ...(bug?.effects?.() ?? [])];
  if (!client.isDone) history.violate("every call is answered in the end", "a client still waits");
  checkInvariants({ history, jobs: witness.current, effects, leaseMs });
  return summarise(seed, history, witness, weather);
}

async function stopAll(
  cluster: Cluster,
  world: VirtualClock,
  history: History,
  leaseMs: number,
): Promise<void> {
  let stopped = false;
  const stopping = cluster.stop().then(() => {
    stopped = true;
  });
  for (let turn = 0; turn < 20 && !stopped; turn += 1) await world.advance(leaseMs);
  if (stopped) return stopping;
  history.violate("a stop comes to its end", "a node has not stopped within 20 leases");
}

function summarise(
  seed: number,
  history: History,
  witness: StoreWitness,
  weather: Weather,
): SimulationResult {
  const states: Record<string, number> = {};
  for (const { state } of witness.current.values()) states[state] = (states[state] ?? 0) + 1;
  return {
    seed,
    violations: history.violations,
    trace: history.trace,
    jobs: witness.current.size,
    runs: history.runs.length,
    faults: history.faults.length,
    awaits: weather.awaits,
    ...witness.ledger.counts,
    climate: weather.climate.name,
    states,
  };
}
