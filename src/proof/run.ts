import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEscapement } from "../app/create.ts";
import type { Escapement } from "../app/escapement.ts";
import { sleep, systemClock } from "../clock.ts";
import type { Delivery } from "../job.ts";
import { silentLogger } from "../log.ts";
import { storeFromUrl } from "../stores/open.ts";
import { Chance } from "../testing/chance.ts";
import type { FaultKind } from "../verify-report.ts";
import { check, type Verdict } from "./checker.ts";
import { VerifyClient } from "./client.ts";
import { crashPoints, relayCrashPoints } from "./crash-points.ts";
import { asList, defineJobs } from "./definitions.ts";
import { type EffectsTable, openEffects } from "./effects.ts";
import { readFinalJobs, readLedger } from "./final-state.ts";
import { Fleet } from "./fleet.ts";
import type { History, Rules } from "./history.ts";
import { mergeFaults } from "./merge-faults.ts";
import { mostSkewMs, Nemesis } from "./nemesis.ts";
import { readLogs, type Trouble } from "./node-log.ts";
import type { NodePlan, RelayPlan, TamperingPlan } from "./node-plan.ts";
import { FaultProxy } from "./proxy.ts";
import type { RelayEvidence, RelayLine, RelayRules } from "./relay/evidence.ts";
import { routeOf } from "./relay/routes.ts";
import { type BrokerOptions, inboxFile, RelayStage } from "./relay/stage.ts";
import { StoreWatch } from "./stall.ts";
import { type StoreTarget, storeTarget } from "./store-kind.ts";
import { planJobs, type WorkloadOptions } from "./workload.ts";

export interface VerifyOptions {
  /** Null: a SQLite file of its own. */
  readonly store: string | null;
  /** Where jobs are published; null: handlers run in the nodes. */
  readonly to?: BrokerOptions | null;
  readonly deliveries: readonly Delivery[];
  readonly faults: readonly FaultKind[];
  readonly nodes: number;
  readonly jobs: number;
  readonly durationMs: number;
  readonly seed: number;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly concurrency: number;
  readonly onProgress?: (progress: Progress) => void;
  /** Restarts the store's server, for one that was started for the run; abruptly: as after a crash. */
  readonly restart?: (abruptly: boolean) => Promise<void>;
  readonly tampering?: TamperingPlan;
  readonly slow?: NonNullable<WorkloadOptions["slow"]>;
  /** How long nothing may change before what is left counts as stuck. */
  readonly patienceMs?: number;
}

export interface Progress {
  readonly phase: "running" | "draining";
  readonly elapsedMs: number;
  readonly enqueued: number;
  readonly unfinished: number;
  readonly faults: number;
}

export interface VerifyResult {
  readonly history: History;
  readonly verdict: Verdict;
  readonly engine: string;
  /** When the workload began, on the clock of the history. */
  readonly beganAtMs: number;
  /** Errors that nodes told of. */
  readonly troubles: readonly Trouble[];
}

const retryMs = 100;
const scheduleEveryMs = 500;
const reportEveryMs = 1_000;

/** How many jobs relays have named and not settled, over how many partitions: few, so that a fault's cost can be told from chance. */
const relaying = { inFlight: 64, partitions: 8 };
/** A publish that was refused time and again waits for up to a minute. */
const relayPatienceMs = 65_000;

/** Runs real processes against a store, harms them, and judges what came of it. Whatever it started, it ends. */
export async function verify(options: VerifyOptions): Promise<VerifyResult> {
  const folder = mkdtempSync(join(tmpdir(), "escapement-verify-"));
  try {
    const target = storeTarget(options.store ?? `sqlite:${join(folder, "jobs.db")}`);
    return await new VerifyRun(options, target, folder).run();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

class VerifyRun {
  readonly #options: VerifyOptions;
  readonly #target: StoreTarget;
  readonly #logs: string;
  readonly #inbox: string | null;
  readonly #relay: RelayRules | null;
  readonly #namespace: string;
  readonly #chance: Chance;

  constructor(options: VerifyOptions, target: StoreTarget, folder: string) {
    this.#options = options;
    this.#target = target;
    this.#logs = join(folder, "logs");
    mkdirSync(this.#logs);
    const to = options.to ?? null;
    this.#relay = to === null ? null : { ...relaying, dispatchTimeoutMs: Math.max(500, options.leaseMs / 2) };
    const ownInbox = target.kind === "redis" ? join(folder, "inbox.db") : null;
    this.#inbox = to === null ? ownInbox : inboxFile(folder);
    this.#namespace = `verify-${options.seed}-${Date.now().toString(36)}`;
    this.#chance = new Chance(options.seed, "clocks");
  }

  async run(): Promise<VerifyResult> {
    const { nodes } = this.#options;
    await using stage = await this.#openStage();
    await using reader = await this.#createApp(this.#target.url, stage);
    await reader.migrate();
    const { engine } = await reader.health();
    const rules = await this.#rules(reader);
    await using effects = await openEffects(this.#target, this.#inbox);
    await using lock = await this.#openLock();
    await using proxy = await this.#startProxy();
    const url = proxy?.url ?? this.#target.url;
    await using app = await this.#createApp(url, stage);
    const client = new VerifyClient(app, defineJobs(retryMs, undefined, await this.#route(stage)));
    await using fleet = new Fleet({
      size: nodes,
      program: stage === null ? "node" : "relay/node",
      planFor: (name) => this.#nodePlan(name, url, stage),
    });
    await stage?.start();
    await fleet.start();
    const nemesis = this.#nemesis(fleet, stage, proxy, (lock ?? effects).isWritable);
    const beganAtMs = systemClock.monotonic();
    const watch = new StoreWatch(() => reader.health(), this.#options.leaseMs);
    const stopReporting = this.#report(beganAtMs, reader, client, nemesis, fleet);
    try {
      await this.#play(client, nemesis);
      fleet.assertSound();
      await this.#drain(reader);
      await stage?.settle();
    } finally {
      await watch.stop();
      await stopReporting();
    }
    await fleet.stop();
    fleet.assertSound();
    await stage?.stop();
    const found = await effects.read(this.#namespace);
    const logs = readLogs(this.#logs);
    const faults = mergeFaults(nemesis.faults, [...watch.stalls, ...logs.faults]);
    const seen = {
      lines: logs.lines,
      faults,
      effects: found,
      relay: await this.#evidence(stage, logs.relay),
    };
    const history = await this.#gather(rules, client, reader, seen);
    await this.#cleanUp(() => effects.forget(this.#namespace));
    const name = stage === null ? engine : `${engine} → ${stage.route.kind}`;
    return { history, verdict: check(history), engine: name, beganAtMs, troubles: logs.troubles };
  }

  #nemesis(
    fleet: Fleet,
    stage: RelayStage | null,
    store: FaultProxy | null,
    isWritable: (withinMs: number) => boolean,
  ): Nemesis {
    const { faults, seed, leaseMs, durationMs, restart } = this.#options;
    return new Nemesis({
      seed,
      kinds: faults,
      leaseMs,
      everyMs: Math.min(2_000, durationMs / 8),
      fleet,
      points: stage === null ? crashPoints : relayCrashPoints,
      store,
      restart: restart ?? null,
      broker: stage?.ways ?? null,
      restartBroker: stage?.restart ?? null,
      consumers: stage?.consumers ?? null,
      isWritable,
    });
  }

  async #createApp(store: string, stage: RelayStage | null): Promise<Escapement> {
    const { leaseMs, pollMs } = this.#options;
    return createEscapement({
      store,
      namespace: this.#namespace,
      jobs: asList(defineJobs(retryMs, undefined, await this.#route(stage))),
      lease: leaseMs,
      poll: pollMs,
      log: silentLogger,
    });
  }

  // ── Where jobs are published ──

  async #openStage(): Promise<RelayStage | null> {
    const { to = null, leaseMs, concurrency } = this.#options;
    if (to === null || this.#relay === null || this.#inbox === null) return null;
    const common = { namespace: this.#namespace, leaseMs, concurrency, retryMs };
    return RelayStage.open({
      broker: to,
      topic: this.#namespace,
      dispatchTimeoutMs: this.#relay.dispatchTimeoutMs,
      leaseMs,
      inbox: this.#inbox,
      logs: this.#logs,
      planFor: (name) => ({ ...common, name, log: join(this.#logs, `${name}.log`) }),
    });
  }

  async #route(stage: RelayStage | null) {
    return stage === null ? undefined : routeOf(stage.route);
  }

  async #evidence(stage: RelayStage | null, lines: readonly RelayLine[]): Promise<RelayEvidence | null> {
    if (stage === null || this.#relay === null) return null;
    return { rules: this.#relay, lines, copies: await stage.copies(lines) };
  }

  /** The effects of consumers are in a file of their own; which then says nothing of the store's. */
  async #openLock(): Promise<EffectsTable | null> {
    if (this.#relay === null || this.#target.kind !== "sqlite") return null;
    return openEffects(this.#target, null);
  }

  async #startProxy(): Promise<FaultProxy | null> {
    return this.#target.proxied === null ? null : FaultProxy.start(this.#target.proxied);
  }

  async #rules(reader: Escapement): Promise<Rules> {
    const { leaseMs, pollMs, nodes, concurrency } = this.#options;
    const askedAtMs = systemClock.monotonic();
    const { now, capabilities } = await reader.health();
    const answeredAtMs = systemClock.monotonic();
    return {
      leaseMs,
      pollMs,
      nodes,
      concurrency,
      retryMs,
      // The store's clock was read somewhere between the two; the machine's own may be slewed a little during the run.
      precisionMs: capabilities.timePrecisionMs + (answeredAtMs - askedAtMs) / 2 + 5,
      wallOffsetMs: now.getTime() - (askedAtMs + answeredAtMs) / 2,
      effectsWith: this.#inbox === null ? "job" : "inbox",
    };
  }

  #nodePlan(name: string, store: string, stage: RelayStage | null): NodePlan | RelayPlan {
    const { leaseMs, pollMs, concurrency, faults, tampering, seed } = this.#options;
    const plan: NodePlan = {
      name,
      store,
      namespace: this.#namespace,
      log: join(this.#logs, `${name}.log`),
      leaseMs,
      pollMs,
      concurrency,
      retryMs,
      inbox: this.#inbox,
      clockOffsetMs: faults.includes("clock") ? this.#chance.integer(-mostSkewMs, mostSkewMs) : null,
      tampering: tampering ?? null,
    };
    if (stage === null) return plan;
    const drill = faults.includes("publish") ? seed : null;
    return { ...plan, ...relaying, route: stage.route, drill };
  }

  async #play(client: VerifyClient, nemesis: Nemesis): Promise<void> {
    const { durationMs, deliveries } = this.#options;
    const ended = sleep(systemClock, durationMs);
    nemesis.start();
    const keys = deliveries.map((delivery) => `every-${delivery}`);
    await Promise.all(
      deliveries.map((delivery) => client.schedule(`every-${delivery}`, scheduleEveryMs, delivery)),
    );
    const played = client.play(planJobs({ ...this.#options, routed: this.#relay !== null }));
    await ended;
    await nemesis.stop();
    await played;
    // What is due now must still be planned: the rule stands a little longer than the faults.
    await sleep(systemClock, this.#options.pollMs + scheduleEveryMs);
    await Promise.all(keys.map((key) => client.unschedule(key)));
  }

  /** Waits until every job has ended, as long as there is progress. */
  async #drain(reader: Escapement): Promise<void> {
    const { leaseMs, pollMs } = this.#options;
    const usualMs = this.#relay === null ? Math.max(5_000, 2 * (leaseMs + pollMs + 1_000)) : relayPatienceMs;
    const patienceMs = this.#options.patienceMs ?? usualMs;
    let left = Number.POSITIVE_INFINITY;
    let changedAtMs = systemClock.monotonic();
    while (systemClock.monotonic() - changedAtMs < patienceMs) {
      const now = await unfinished(reader);
      if (now === 0) return;
      if (now !== left) changedAtMs = systemClock.monotonic();
      left = now;
      await sleep(systemClock, 100);
    }
  }

  #report(
    beganAtMs: number,
    reader: Escapement,
    client: VerifyClient,
    nemesis: Nemesis,
    fleet: Fleet,
  ): () => Promise<void> {
    const { onProgress, durationMs } = this.#options;
    const end = new AbortController();
    const reporting = (async () => {
      while (onProgress !== undefined && !end.signal.aborted) {
        const elapsedMs = systemClock.monotonic() - beganAtMs;
        const left = await unfinished(reader).catch(() => 0);
        const faults = Math.max(nemesis.faults.length, fleet.started - this.#options.nodes);
        const phase = elapsedMs < durationMs ? "running" : "draining";
        onProgress({ phase, elapsedMs, enqueued: client.enqueued, unfinished: left, faults });
        await sleep(systemClock, reportEveryMs, end.signal);
      }
    })();
    return async () => {
      end.abort();
      await reporting;
    };
  }

  async #gather(
    rules: Rules,
    client: VerifyClient,
    reader: Escapement,
    seen: Pick<History, "lines" | "faults" | "effects" | "relay">,
  ): Promise<History> {
    const keys = this.#options.deliveries.map((delivery) => `every-${delivery}`);
    return {
      rules,
      operations: client.operations,
      ...seen,
      jobs: await readFinalJobs(reader),
      ledger: await readLedger(reader, keys),
      endedAtMs: systemClock.monotonic(),
    };
  }

  /** Takes the run's jobs out of a store that is not the run's own. */
  async #cleanUp(forgetEffects: () => Promise<void>): Promise<void> {
    if (this.#options.store === null) return;
    await forgetEffects();
    const factory = await storeFromUrl(this.#target.url);
    const context = { namespace: this.#namespace, clock: systemClock, log: silentLogger };
    const store = await factory.open(context);
    try {
      const kept = { succeededMs: 0, cancelledMs: 0, deadMs: 0, lostMs: 0, nodesMs: 0, occurrencesMs: 0 };
      while ((await store.prune({ ...kept, limit: 1_000 })).more);
    } finally {
      await store.close();
    }
  }
}

function unfinished(reader: Escapement): Promise<number> {
  return reader.count({ states: ["waiting", "active", "blocked"] });
}
