// npm run simulate:herd: two hundred relays over 1,024 partitions, half of which die at once.

import { parseArgs } from "node:util";
import { Escapement } from "../../../src/app/escapement.ts";
import { defineJob, type JobDefinition } from "../../../src/definition.ts";
import { silentLogger } from "../../../src/log.ts";
import type { Message } from "../../../src/message/message.ts";
import type { PublishResult, TransportFactory } from "../../../src/message/transport.ts";
import type { StoreFactory } from "../../../src/store/opening.ts";
import type { PartitionTable } from "../../../src/store/partitions.ts";
import { memory } from "../../../src/stores/memory/index.ts";
import { Chance } from "../../../src/testing/chance.ts";
import { override } from "../../../src/testing/override.ts";
import { VirtualClock } from "../../../src/testing/virtual-clock.ts";
import { BatchingTransport, turnBatching } from "../../../src/transports/batching.ts";
import { SimulatedProcess } from "./simulated-process.ts";

const leaseMs = 30_000;
const partitions = 1_024;
const brokerMs = 40;

export interface HerdResult {
  /** How many partitions the nodes held, least and most, before the deaths. */
  readonly shares: readonly [number, number];
  /** From the first start, and from the deaths, until every partition had a living owner. */
  readonly coveredMs: number;
  readonly recoveredMs: number;
  readonly sharesAfter: readonly [number, number];
  readonly jobs: number;
  /** Messages beyond one for each job, and how many jobs were named and not settled at the moment of the deaths. */
  readonly copies: number;
  readonly copiesBound: number;
  readonly missing: number;
}

/** Real apps with the role of a relay, on the memory store and a virtual clock; the broker takes everything after a few milliseconds. */
export async function herd(nodes: number, jobsPerSecond: number, seed: number): Promise<HerdResult> {
  const world = new VirtualClock();
  const store = memory({ clock: world });
  const arrivals = new Map<string, number>();
  const members = Array.from({ length: nodes }, (_, n) => member(`n${n}`, world, store, arrivals, seed));
  const watcher = member("client", world, store, arrivals, seed);
  const table = await store.open({ namespace: "default", clock: world, log: silentLogger });
  const living = (): ReadonlySet<string> =>
    new Set(members.filter(({ process }) => process.alive).map(({ seen }) => seen.owner));
  const isCovered = async (): Promise<boolean> => {
    const alive = living();
    const { partitions: all } = await table.partitions();
    return all.length === partitions && all.every(({ owner }) => owner !== null && alive.has(owner));
  };

  for (const { app } of members) void app.start({ roles: ["relay"] });
  const coveredMs = await until(world, isCovered);
  await world.advance(2 * leaseMs);
  const shares = sharesOf(await table.partitions());

  let jobs = 0;
  const enqueue = async (): Promise<void> => {
    const count = jobsPerSecond / 10;
    jobs += count;
    await watcher.app.enqueueMany(
      watcher.job,
      Array.from({ length: count }, () => ({ input: null })),
    );
  };
  for (let tenth = 0; tenth < 50; tenth += 1) {
    await enqueue();
    await world.advance(100);
  }
  // The broker has what they published, and has not said so.
  await enqueue();
  await world.advance((brokerMs * 3) / 4);
  const dead = members.filter((_, n) => n % 2 === 0);
  const underWay = await watcher.app.count({ states: ["active"] });
  for (const { process } of dead) process.crash("with half of the herd");
  const recoveredMs = await until(world, isCovered, enqueue);
  await world.advance(4 * leaseMs);
  const sharesAfter = sharesOf(await table.partitions());
  const copies = [...arrivals.values()].reduce((sum, count) => sum + count - 1, 0);
  return {
    shares,
    coveredMs,
    recoveredMs,
    sharesAfter,
    jobs,
    copies,
    copiesBound: underWay,
    missing: jobs - arrivals.size,
  };
}

interface Member {
  readonly process: SimulatedProcess;
  readonly app: Escapement;
  readonly job: JobDefinition<null, unknown>;
  /** The name under which it holds partitions, once it has asked for some. */
  readonly seen: { owner: string };
}

function member(
  name: string,
  world: VirtualClock,
  store: StoreFactory,
  arrivals: Map<string, number>,
  seed: number,
): Member {
  const process = new SimulatedProcess(name, world, new Chance(seed, `process ${name}`));
  const seen = { owner: "" };
  const job = defineJob<null>({
    name: "tick",
    route: { transport: broker(process, world, arrivals), destination: "topic", dispatchTimeoutMs: 10_000 },
  });
  const near: StoreFactory = {
    open: async (context) => {
      const raw = await store.open(context);
      const acquirePartitions: typeof raw.acquirePartitions = (params) => {
        seen.owner = params.owner;
        return process.alive ? raw.acquirePartitions(params) : new Promise(() => {});
      };
      return override(raw, { acquirePartitions });
    },
  };
  const relay = { partitions, inFlight: 4_096 };
  const app = new Escapement(
    { store: near, jobs: [job], lease: leaseMs, relay, log: silentLogger },
    process.runtime,
  );
  app.on("error", () => {});
  return { process, app, job, seen };
}

function broker(
  process: SimulatedProcess,
  world: VirtualClock,
  arrivals: Map<string, number>,
): TransportFactory {
  const publish = (messages: readonly Message[]): Promise<PublishResult[]> =>
    new Promise((resolve) => {
      world.after(brokerMs / 2, () => {
        if (!process.alive) return;
        for (const { headers } of messages) {
          const id = headers["escapement-id"] ?? "";
          arrivals.set(id, (arrivals.get(id) ?? 0) + 1);
        }
        const results = messages.map((): PublishResult => ({ kind: "acknowledged" }));
        world.after(brokerMs / 2, () => process.deliver("io", () => resolve(results)));
      });
    });
  return {
    kind: "simulated",
    address: "",
    open: async ({ clock }) => new BatchingTransport({ publish, close: async () => {} }, clock, turnBatching),
  };
}

/** Moves on by tenths of a second until it holds, and says how long that took. */
async function until(
  world: VirtualClock,
  holds: () => Promise<boolean>,
  meanwhile?: () => Promise<void>,
): Promise<number> {
  const since = world.monotonic();
  while (!(await holds())) {
    if (world.monotonic() - since > 20 * leaseMs) return Number.POSITIVE_INFINITY;
    await meanwhile?.();
    await world.advance(100);
  }
  return world.monotonic() - since;
}

function sharesOf({ partitions: all }: PartitionTable): readonly [number, number] {
  const counts = new Map<string, number>();
  for (const { owner } of all) if (owner !== null) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  return [Math.min(...counts.values()), Math.max(...counts.values())];
}

const { values } = parseArgs({
  options: {
    nodes: { type: "string", default: "200" },
    rate: { type: "string", default: "2000" },
    seed: { type: "string", default: "1" },
  },
});
const startedAt = performance.now();
const result = await herd(Number(values.nodes), Number(values.rate), Number(values.seed));
console.log(JSON.stringify(result, null, 2));
console.log(`in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s of real time`);
const isKept =
  result.missing === 0 && result.copies <= result.copiesBound && Number.isFinite(result.recoveredMs);
process.exit(isKept ? 0 : 1);
