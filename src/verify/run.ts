import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEscapement, type Escapement } from "../app/escapement.ts";
import { sleep, systemClock } from "../clock.ts";
import type { Delivery } from "../job.ts";
import { silentLogger } from "../log.ts";
import { storeFromUrl } from "../stores/open.ts";
import { Chance } from "./chance.ts";
import { check, type Verdict } from "./checker.ts";
import { VerifyClient } from "./client.ts";
import { asList, defineJobs } from "./definitions.ts";
import { openEffects } from "./effects.ts";
import { readFinalJobs, readLedger } from "./final-state.ts";
import { Fleet } from "./fleet.ts";
import { type FaultKind, type FaultWindow, faultKinds, type History, type Rules } from "./history.ts";
import { mostSkewMs, Nemesis } from "./nemesis.ts";
import { readLogs, type Trouble } from "./node-log.ts";
import type { NodePlan, TamperingPlan } from "./node-plan.ts";
import { FaultProxy } from "./proxy.ts";
import { StoreWatch } from "./stall.ts";
import { type StoreTarget, storeTarget } from "./store-kind.ts";
import { planJobs, type WorkloadOptions } from "./workload.ts";

export interface VerifyOptions {
  /** Null: a SQLite file of its own. */
  readonly store: string | null;
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

/** What can be done to a run on this store. */
export function possibleFaults(store: string | null, mayRestart: boolean): readonly FaultKind[] {
  const hasNetwork = store !== null && storeTarget(store).proxied !== null;
  return faultKinds.filter(
    (kind) => (kind !== "network" || hasNetwork) && (kind !== "restart" || mayRestart),
  );
}

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
  readonly #namespace: string;
  readonly #chance: Chance;

  constructor(options: VerifyOptions, target: StoreTarget, folder: string) {
    this.#options = options;
    this.#target = target;
    this.#logs = join(folder, "logs");
    mkdirSync(this.#logs);
    this.#inbox = target.kind === "redis" ? join(folder, "inbox.db") : null;
    this.#namespace = `verify-${options.seed}-${Date.now().toString(36)}`;
    this.#chance = new Chance(options.seed, "clocks");
  }

  async run(): Promise<VerifyResult> {
    const { faults, nodes, seed, leaseMs, durationMs, restart } = this.#options;
    await using reader = this.#createApp(this.#target.url);
    await reader.migrate();
    const { engine } = await reader.health();
    const rules = await this.#rules(reader);
    await using effects = await openEffects(this.#target, this.#inbox);
    await using proxy = await this.#startProxy();
    const url = proxy?.url ?? this.#target.url;
    await using app = this.#createApp(url);
    const client = new VerifyClient(app, defineJobs(retryMs));
    await using fleet = new Fleet(nodes, (name) => this.#nodePlan(name, url));
    await fleet.start();
    const nemesis = new Nemesis({
      seed,
      kinds: faults,
      leaseMs,
      everyMs: Math.min(2_000, durationMs / 8),
      fleet,
      effects,
      proxy,
      restart: restart ?? null,
    });
    const beganAtMs = systemClock.monotonic();
    const watch = new StoreWatch(() => reader.health(), leaseMs);
    const stopReporting = this.#report(beganAtMs, reader, client, nemesis, fleet);
    try {
      await this.#play(client, nemesis);
      fleet.assertSound();
      await this.#drain(reader);
    } finally {
      await watch.stop();
      await stopReporting();
    }
    await fleet.stop();
    fleet.assertSound();
    const found = await effects.read(this.#namespace);
    const logs = readLogs(this.#logs);
    const faultsSeen = mergeFaults(nemesis.faults, [...watch.stalls, ...logs.faults]);
    const history = await this.#gather(rules, client, logs.lines, faultsSeen, reader, found);
    await this.#cleanUp(() => effects.forget(this.#namespace));
    return { history, verdict: check(history), engine, beganAtMs, troubles: logs.troubles };
  }

  #createApp(store: string): Escapement {
    const { leaseMs, pollMs } = this.#options;
    return createEscapement({
      store,
      namespace: this.#namespace,
      jobs: asList(defineJobs(retryMs)),
      lease: leaseMs,
      poll: pollMs,
      log: silentLogger,
    });
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

  #nodePlan(name: string, store: string): NodePlan {
    const { leaseMs, pollMs, concurrency, faults, tampering } = this.#options;
    return {
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
  }

  async #play(client: VerifyClient, nemesis: Nemesis): Promise<void> {
    const { durationMs, deliveries } = this.#options;
    const ended = sleep(systemClock, durationMs);
    nemesis.start();
    const keys = deliveries.map((delivery) => `every-${delivery}`);
    await Promise.all(
      deliveries.map((delivery) => client.schedule(`every-${delivery}`, scheduleEveryMs, delivery)),
    );
    const played = client.play(planJobs(this.#options));
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
    const patienceMs = Math.max(5_000, 2 * (leaseMs + pollMs + 1_000));
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
    lines: History["lines"],
    faults: History["faults"],
    reader: Escapement,
    effects: History["effects"],
  ): Promise<History> {
    const keys = this.#options.deliveries.map((delivery) => `every-${delivery}`);
    return {
      rules,
      operations: client.operations,
      lines,
      faults,
      jobs: await readFinalJobs(reader),
      effects,
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

/** Puts together what was done and what the nodes found: one that was stopped on purpose also finds that it could not run. */
function mergeFaults(done: readonly FaultWindow[], noted: readonly FaultWindow[]): FaultWindow[] {
  const explained = (stall: FaultWindow): boolean =>
    done.some(
      ({ node, fromMs, untilMs }) =>
        (node === null || node === stall.node) && fromMs <= stall.untilMs && untilMs >= stall.fromMs,
    );
  const own = noted.filter((fault) => fault.kind !== "stall" || !explained(fault));
  // A node that came to its point while it was being killed died once.
  const died = new Set(own.filter(({ kind }) => kind === "kill").map(({ node }) => node));
  const others = done.filter(({ kind, node }) => kind !== "kill" || !died.has(node));
  return [...others, ...own].toSorted((a, b) => a.fromMs - b.fromMs);
}
