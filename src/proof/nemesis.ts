import { sleep, systemClock } from "../clock.ts";
import { Chance } from "../testing/chance.ts";
import type { FaultKind } from "../verify-report.ts";
import type { CrashPoint } from "./crash-points.ts";
import type { Fleet, NodeProcess } from "./fleet.ts";
import type { FaultWindow } from "./history.ts";
import type { Way } from "./ways.ts";

export interface NemesisParts {
  readonly seed: number;
  readonly kinds: readonly FaultKind[];
  readonly leaseMs: number;
  readonly everyMs: number;
  readonly fleet: Fleet;
  /** Where nodes can be told to die. */
  readonly points: readonly CrashPoint[];
  /** The way to the store; null: there is no network. */
  readonly store: Way | null;
  /** Restarts the store's server; only for one that was started for the run. */
  readonly restart: ((abruptly: boolean) => Promise<void>) | null;
  /** The way to the broker; null: there is none, or nothing can stand in it. */
  readonly broker: Way | null;
  /** Restarts the broker and tells what it did; only for one that was started for the run. */
  readonly restartBroker: ((abruptly: boolean) => Promise<string>) | null;
  /** Those behind the broker, which are killed now and then; null: there are none. */
  readonly consumers: Fleet | null;
  /** Whether a write gets through to the store now; a process that was stopped in the middle of one keeps all others out. */
  isWritable(withinMs: number): boolean;
}

/** How far clocks are off: a little less than what receivers of signed requests forgive. */
export const mostSkewMs = 5 * 60_000 - 10_000;
/** How soon it is looked again whether somebody can be spared. */
const waitMs = 100;
/** How often a node is stopped anew that was in the middle of a write. */
const pauseAttempts = 3;
/** How long a node may take to come to the point at which it was told to die. */
const pointWithinMs = 5_000;
/** Whom a kill strikes, where there are consumers. */
const consumersShare = 0.2;
/** These happen on the way to a server, or to a server itself. */
const onTheWay: readonly FaultKind[] = ["network", "restart", "broker", "both", "broker-restart"];

/** Does harm, one fault after the other, by its seed, and writes down what it did and when. */
export class Nemesis {
  readonly faults: FaultWindow[] = [];
  readonly #parts: NemesisParts;
  readonly #chance: Chance;
  readonly #end = new AbortController();
  readonly #pending = new Set<Promise<unknown>>();
  /** Those to which something is being done. */
  readonly #busy = new Set<NodeProcess>();
  #cutOff = false;
  #running: Promise<unknown> | null = null;

  constructor(parts: NemesisParts) {
    this.#parts = parts;
    this.#chance = new Chance(parts.seed, "faults");
  }

  /** Kills come beside everything else, so that something else is often under way when a node dies. */
  start(): void {
    const { kinds } = this.#parts;
    // The drill is in the nodes.
    const others = kinds.filter((kind) => kind !== "kill" && kind !== "publish");
    const streams = [kinds.filter((kind) => kind === "kill"), others];
    this.#running = Promise.all(streams.map((stream) => this.#run(stream)));
  }

  /** Ends every fault that lasts. */
  async stop(): Promise<void> {
    this.#end.abort();
    await this.#running;
    await Promise.all(this.#pending);
    this.#parts.store?.pass();
    this.#parts.broker?.pass();
  }

  async #run(kinds: readonly FaultKind[]): Promise<void> {
    const { everyMs } = this.#parts;
    if (kinds.length === 0) return;
    for (let round = 0; ; ) {
      await sleep(systemClock, this.#chance.integer(everyMs / 2, everyMs * 1.25), this.#end.signal);
      if (this.#end.signal.aborted) return;
      // In turn first, so that a short run has some of each.
      const kind = kinds[round] ?? this.#chance.pick(kinds);
      while (!this.#mayDo(kind) && !this.#end.signal.aborted)
        await sleep(systemClock, waitMs, this.#end.signal);
      if (this.#end.signal.aborted) return;
      round += 1;
      const harm = this.#harm(kind).finally(() => this.#pending.delete(harm));
      this.#pending.add(harm);
    }
  }

  get #free(): NodeProcess[] {
    return this.#parts.fleet.ready.filter((node) => !this.#busy.has(node));
  }

  /** Somebody must be left to take over, and one that is still starting cannot. Ways and servers are disturbed in one way at a time. */
  #mayDo(kind: FaultKind): boolean {
    return onTheWay.includes(kind) ? !this.#cutOff : this.#free.length >= 2;
  }

  async #harm(kind: FaultKind): Promise<void> {
    if (onTheWay.includes(kind)) {
      this.#cutOff = true;
      await this.#harmServers(kind);
      this.#cutOff = false;
      return;
    }
    const node = this.#chance.pick(this.#free);
    this.#busy.add(node);
    if (kind === "kill") await this.#kill(node);
    else if (kind === "pause") await this.#pause(node);
    else if (kind === "block") await this.#block(node);
    else this.#skew(node);
    this.#busy.delete(node);
  }

  async #harmServers(kind: FaultKind): Promise<void> {
    const { store, broker } = this.#parts;
    if (kind === "restart") return this.#restart();
    if (kind === "broker-restart") return this.#restartBroker();
    const ways = { network: [store], broker: [broker], both: [store, broker] }[
      kind as "network" | "broker" | "both"
    ];
    await this.#disturb(
      kind,
      ways.filter((way) => way !== null),
    );
  }

  /** Half of them at random moments, half at the points that hurt most; those the node writes down itself. */
  async #kill(node: NodeProcess): Promise<void> {
    const { consumers, points } = this.#parts;
    if (consumers !== null && consumers.ready.length >= 2 && this.#chance.happens(consumersShare)) {
      this.faults.push(await consumers.kill(this.#chance.pick(consumers.ready)));
      return;
    }
    if (this.#chance.happens(0.5)) {
      this.faults.push(await this.#parts.fleet.kill(node));
      return;
    }
    node.order({ kind: "crash", point: this.#chance.pick(points) });
    await Promise.race([node.exited, sleep(systemClock, pointWithinMs, this.#end.signal)]);
    if (node.isAlive) this.faults.push(await this.#parts.fleet.kill(node));
  }

  async #pause(node: NodeProcess): Promise<void> {
    const { leaseMs } = this.#parts;
    const fromMs = systemClock.monotonic();
    const holdsFile = await this.#hold(node);
    await sleep(systemClock, 3 * leaseMs, this.#end.signal);
    node.signal("SIGCONT");
    const detail = holdsFile ? `${node.name} stopped while it held the file` : "stopped for 3 leases";
    this.#note("pause", holdsFile ? null : node.name, fromMs, detail);
  }

  /**
   * Stops a node. One that is in the middle of a write on SQLite holds the file, and with it everybody: no other can renew its leases
   * until it goes on. That is a fault of all of them, and only of use now and then, so it is let go and stopped anew; true when it
   * was caught at it each time.
   */
  async #hold(node: NodeProcess): Promise<boolean> {
    const { leaseMs } = this.#parts;
    for (let attempt = 1; ; attempt++) {
      node.signal("SIGSTOP");
      if (this.#parts.isWritable(leaseMs / 20)) return false;
      if (attempt === pauseAttempts) return true;
      node.signal("SIGCONT");
      await sleep(systemClock, this.#chance.integer(1, 20));
    }
  }

  async #block(node: NodeProcess): Promise<void> {
    const ms = 2 * this.#parts.leaseMs;
    const fromMs = systemClock.monotonic();
    node.order({ kind: "block", ms });
    const report = await node.hear("blocked", ms + 10_000);
    const detail = "its event loop blocked for 2 leases";
    if (report === null) this.#note("block", node.name, fromMs, detail);
    else this.faults.push({ kind: "block", node: node.name, detail, ...windowOf(report) });
  }

  #skew(node: NodeProcess): void {
    const offsetMs = this.#chance.integer(-mostSkewMs, mostSkewMs);
    node.order({ kind: "clock", offsetMs });
    this.#note("clock", node.name, systemClock.monotonic(), `its clock off by ${offsetMs} ms`);
  }

  async #disturb(kind: FaultKind, ways: readonly Way[]): Promise<void> {
    const { leaseMs } = this.#parts;
    const fromMs = systemClock.monotonic();
    const forMs = this.#chance.integer(100, leaseMs);
    const what = this.#chance.pick(["cut", "black hole", "lost replies", "latency"] as const);
    const cutMs = this.#chance.happens(0.5) ? 0 : forMs;
    const latencyMs = this.#chance.integer(5, 100);
    for (const way of ways) {
      if (what === "cut") way.cut(cutMs);
      else if (what === "black hole") way.blackHole(forMs);
      else if (what === "lost replies") way.dropReplies(forMs);
      else way.delay(latencyMs);
    }
    await sleep(systemClock, forMs, this.#end.signal);
    if (what === "latency") for (const way of ways) way.delay(0);
    this.#note(kind, null, fromMs, what);
  }

  async #restart(): Promise<void> {
    const { restart } = this.#parts;
    if (restart === null) return;
    const fromMs = systemClock.monotonic();
    const abruptly = this.#chance.happens(0.5);
    await restart(abruptly);
    this.#note("restart", null, fromMs, `the store's server${abruptly ? ", killed" : ", in good order"}`);
  }

  async #restartBroker(): Promise<void> {
    const { restartBroker } = this.#parts;
    if (restartBroker === null) return;
    const fromMs = systemClock.monotonic();
    const what = await restartBroker(this.#chance.happens(0.5));
    this.#note("broker-restart", null, fromMs, what);
  }

  #note(kind: FaultKind, node: string | null, fromMs: number, detail: string): void {
    this.faults.push({ kind, node, fromMs, untilMs: systemClock.monotonic(), detail });
  }
}

function windowOf(report: { readonly fromMs: number; readonly untilMs: number }) {
  return { fromMs: report.fromMs, untilMs: report.untilMs };
}
