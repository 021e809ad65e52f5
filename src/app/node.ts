import { hostname } from "node:os";
import { systemClock } from "../clock.ts";
import type { AnyDefinition } from "../definition.ts";
import { type Duration, parseDuration } from "../duration.ts";
import type { JobsForHandlers } from "../enqueue.ts";
import { describe, EscapementError } from "../errors.ts";
import type { Emit } from "../events.ts";
import type { Logger } from "../log.ts";
import { checkName } from "../names.ts";
import type { QueueDepths } from "../observe/metrics.ts";
import { checkInteger, checkKnown, checkOneOf } from "../options.ts";
import { Planner } from "../planner/planner.ts";
import { Reaper } from "../reaper/reaper.ts";
import { Canary, canary } from "../relay/canary.ts";
import { Relay, type RelayStatus } from "../relay/relay.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { version } from "../runtime/version.ts";
import type { Settings } from "../settings.ts";
import type { NodeRecord } from "../store/nodes.ts";
import type { Store } from "../store/store.ts";
import type { Around } from "../telemetry/middleware.ts";
import type { ClaimerStatus } from "../worker/claimer.ts";
import { Worker } from "../worker/worker.ts";
import { checkDeliveries } from "./delivery.ts";
import { askEveryMs, countEveryMs, countingRole, DepthWatch } from "./depth-watch.ts";
import { Presence } from "./presence.ts";
import { checkThreadFiles } from "./thread-files.ts";

/** A job is reported to others once it has run for this long: one that ends sooner would be reported after it is over. */
const shownAfterMs = 1_000;
/** A record is written at each heartbeat, so it stays small. */
const mostShown = 20;

const roles = ["worker", "planner", "relay", "reaper"] as const;

/** What a process can be; see docs/ARCHITECTURE.md. */
export type Role = (typeof roles)[number];

export interface StartOptions {
  /** @default all of them */
  readonly roles?: readonly Role[];
  /** Which queues to work on, with a limit of this process for each if wanted. @default every queue */
  readonly queues?: readonly string[] | Readonly<Record<string, { readonly concurrency?: number }>>;
  /**
   * How long this process must have been in touch with the store before it ends claims whose lease ran out; after an outage their holders
   * need that time to renew them. 0 for a process that lives only for moments, as `escapement tick` does.
   *
   * @default half the lease
   */
  readonly reapAfter?: Duration;
}

export interface NodeParts {
  /** Under which it claims, plans and shows itself. */
  readonly id: string;
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly definitions: ReadonlyMap<string, AnyDefinition>;
  readonly jobs: JobsForHandlers;
  /** What runs around handlers; null: nothing. */
  readonly around: Around | null;
  readonly emit: Emit;
  /** Keeps in the history how much work queues have. */
  readonly keepDepths: (depths: QueueDepths) => void;
  readonly log: Logger;
  readonly options: StartOptions;
}

type Queues = readonly { readonly queue: string; readonly concurrency: number | null }[] | null;

/** A started process: its roles, begun and ended together. */
export class Node {
  readonly #parts: NodeParts;
  readonly #roles: readonly Role[];
  readonly #queues: Queues;
  readonly #reapAfterMs: number | null;
  #worker: Worker | null = null;
  #planner: Planner | null = null;
  #relay: Relay | null = null;
  #canary: Canary | null = null;
  #reaper: Reaper | null = null;
  #presence: Presence | null = null;
  #depthWatch: DepthWatch | null = null;
  #isRelaying = false;
  #isStarted = false;
  #keepAlive: NodeJS.Timeout | null = null;

  constructor(parts: NodeParts) {
    this.#parts = parts;
    checkKnown(parts.options, ["roles", "queues", "reapAfter"], "start");
    this.#roles = (parts.options.roles ?? roles).map((role) => checkOneOf(role, roles, "roles"));
    this.#queues = resolveQueues(parts.options.queues);
    const { reapAfter } = parts.options;
    this.#reapAfterMs = reapAfter === undefined ? null : parseDuration(reapAfter, "reapAfter");
  }

  /** Starts all roles, or none: what had begun when one of them failed is stopped again. */
  async start(store: Store): Promise<void> {
    try {
      await this.#begin(store);
    } catch (error) {
      await this.stop(0);
      throw error;
    }
  }

  async #begin(store: Store): Promise<void> {
    const { settings, runtime, definitions, emit, log } = this.#parts;
    const { clock, random } = runtime;
    // Without a schema every role would report that beside the error that is thrown.
    if (!settings.migrate) await store.queues();
    if (this.#roles.includes("worker")) {
      const runnable = [...definitions.values()].filter(({ run, route }) => run !== null && route === null);
      checkDeliveries(runnable, store.capabilities, settings, log);
      checkThreadFiles(runnable);
      this.#worker = new Worker({ ...this.#parts, store, claimer: this.#parts.id, queues: this.#queues });
    }
    if (this.#roles.includes("planner")) {
      this.#planner = new Planner({ store, node: this.#parts.id, settings, clock, emit });
    }
    const routed = [...definitions.values()].filter(({ route }) => route !== null);
    // Without a route there is nothing that it could publish, and a partition in its hands would be kept from those who can.
    if (this.#roles.includes("relay") && routed.length > 0) {
      checkDeliveries(routed, store.capabilities, settings, log);
      this.#relay = this.#makeRelay(store);
    }
    if (this.#roles.includes("reaper")) {
      const waitMs = this.#reapAfterMs;
      this.#reaper = new Reaper({ store, settings, clock, random, emit, ...(waitMs !== null && { waitMs }) });
    }
    this.#presence = new Presence(store, clock, settings.heartbeatMs, () => this.#record(), emit);
    // The worker first: its claim takes the longest, and the connection that is open already.
    const isReady = await Promise.allSettled([
      this.#worker?.prepare(),
      this.#presence.start(),
      this.#planner?.start(),
    ]);
    for (const one of isReady) if (one.status === "rejected") throw one.reason;
    await this.#startRelay();
    // A start that failed must not have begun a handler, which could outlive it.
    this.#worker?.start();
    this.#canary?.start();
    this.#reaper?.start();
    this.#watchDepths(store);
    this.#isStarted = true;
    // The library's timers keep no process alive; a started node is a reason to stay. With a custom clock nothing real is awaited.
    if (clock === systemClock) this.#keepAlive = setInterval(() => {}, 2 ** 30);
  }

  async stop(timeoutMs: number): Promise<void> {
    await this.#depthWatch?.stop();
    await this.#planner?.stop();
    await Promise.all([this.#stopRelay(timeoutMs), this.#worker?.stop(timeoutMs)]);
    await this.#reaper?.stop();
    await this.#presence?.stop();
    if (this.#keepAlive !== null) clearInterval(this.#keepAlive);
  }

  #makeRelay(store: Store): Relay {
    const { settings, runtime, definitions, emit } = this.#parts;
    const { canaryMs } = settings.relay;
    if (canaryMs === null) return new Relay({ ...this.#parts, store, owner: this.#parts.id });
    this.#canary = new Canary(store, runtime, canaryMs, emit);
    const withCanary = new Map([...definitions, [canary.name, canary]]);
    return new Relay({ ...this.#parts, definitions: withCanary, store, owner: this.#parts.id });
  }

  /** All roles run. */
  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** How claiming goes here; null if there is no worker. */
  get claims(): ClaimerStatus | null {
    return this.#worker?.claims ?? null;
  }

  /** How this process's relay is doing; null when it has none. */
  get relayStatus(): RelayStatus | null {
    return this.#relay?.status ?? null;
  }

  /** How much work queues have; null if another node asks for it. */
  get depths(): QueueDepths | null {
    return this.#depthWatch?.latest ?? null;
  }

  #watchDepths(store: Store): void {
    const { id, settings, runtime, emit, keepDepths: keep } = this.#parts;
    const everyMs = askEveryMs(settings, this.#roles);
    if (everyMs === null) return;
    const isCounting = countEveryMs(settings) !== null;
    this.#depthWatch = new DepthWatch({ store, clock: runtime.clock, everyMs, id, isCounting, emit, keep });
    this.#depthWatch.start();
  }

  /** The others learn of it last: its share would sit idle while its transports are opened. */
  async #startRelay(): Promise<void> {
    if (this.#relay === null) return;
    await this.#relay.start();
    this.#isRelaying = true;
    await this.#presence?.tell();
  }

  /** The others learn of it first, so they count on its share while it is still giving it back. */
  async #stopRelay(timeoutMs: number): Promise<void> {
    const relay = this.#relay;
    if (relay === null) return;
    await this.#canary?.stop();
    this.#isRelaying = false;
    await this.#presence?.tell();
    await relay.stop(timeoutMs);
  }

  #record(): NodeRecord {
    const { settings, definitions } = this.#parts;
    const canServe = ({ run, route }: AnyDefinition): boolean =>
      route === null ? run !== null && this.#worker !== null : this.#relay !== null;
    return {
      id: this.#parts.id,
      host: hostname(),
      pid: process.pid,
      version,
      roles: [
        ...this.#roles.filter((role) => role !== "relay" || this.#isRelaying),
        ...(countEveryMs(settings) === null ? [] : [countingRole]),
      ],
      queues: this.#queues?.map(({ queue }) => queue) ?? null,
      names: [...definitions.values()].filter(canServe).map(({ name }) => name),
      concurrency: settings.concurrency,
      active: (this.#worker?.active ?? 0) + (this.#relay?.status.inFlight ?? 0),
      ttlMs: settings.leaseMs,
      running: this.#worker?.running(shownAfterMs).slice(0, mostShown) ?? [],
      destinations: this.#relay?.destinations.slice(0, mostShown) ?? [],
      lags: this.#relay?.lags(shownAfterMs).slice(0, mostShown) ?? [],
    };
  }
}

function resolveQueues(queues: StartOptions["queues"]): Queues {
  if (queues === undefined) return null;
  if (typeof queues !== "object" || queues === null) {
    throw new EscapementError(
      "invalid-option",
      `expected queues to be a list of names, or an object with a queue under each name, got ${describe(queues)}`,
    );
  }
  if (Array.isArray(queues)) {
    return queues.map((queue) => ({ queue: checkName(queue, "the name of a queue"), concurrency: null }));
  }
  return Object.entries(queues).map(([queue, options]) => {
    checkKnown(options, ["concurrency"], `queue ${JSON.stringify(queue)}`);
    const { concurrency } = options as { readonly concurrency?: number };
    return {
      queue: checkName(queue, "the name of a queue"),
      concurrency: concurrency === undefined ? null : checkInteger(concurrency, 1, 100_000, "concurrency"),
    };
  });
}
