import { Escapement } from "../../../src/app/escapement.ts";
import { sleep } from "../../../src/clock.ts";
import { type AnyDefinition, defineJob } from "../../../src/definition.ts";
import { EscapementError } from "../../../src/errors.ts";
import { silentLogger } from "../../../src/log.ts";
import type { EscapementOptions } from "../../../src/settings.ts";
import type { Notice } from "../../../src/store/notices.ts";
import type { StoreFactory } from "../../../src/store/opening.ts";
import type { Store } from "../../../src/store/store.ts";
import { Chance } from "../../../src/testing/chance.ts";
import type { VirtualClock } from "../../../src/testing/virtual-clock.ts";
import { refOf } from "./history.ts";
import { simulatedTransport } from "./relay-broker.ts";
import type { RelayBug } from "./relay-bugs.ts";
import type { RelayHistory } from "./relay-history.ts";
import type { RelayWitness } from "./relay-witness.ts";
import { never, SimulatedProcess } from "./simulated-process.ts";
import type { Weather } from "./weather.ts";

export interface RelayClusterParts {
  readonly seed: number;
  readonly world: VirtualClock;
  readonly history: RelayHistory;
  readonly witness: RelayWitness;
  readonly weather: Weather;
  readonly store: StoreFactory;
  readonly settings: Omit<EscapementOptions, "store" | "jobs" | "log">;
  readonly dispatchTimeoutMs: number;
  readonly nodes: number;
  /** How many partitions a node asks for that comes later, and when one does; null where all ask for the same. */
  readonly more: { readonly partitions: number; readonly afterMs: number } | null;
  readonly bug: RelayBug | null;
}

interface Member {
  readonly process: SimulatedProcess;
  readonly app: Escapement;
  readonly definitions: ReadonlyMap<string, AnyDefinition>;
  readonly link: { isCut: boolean };
  readonly outlet: { isCut: boolean };
  stopping: Promise<void> | null;
  started: boolean;
}

/** Relay nodes, the wires between them, the store and the broker, and what befalls them. */
export class RelayCluster {
  readonly #parts: RelayClusterParts;
  readonly #chance: Chance;
  readonly #places: Member[] = [];
  #lives = 0;
  #over = false;

  constructor(parts: RelayClusterParts) {
    this.#parts = parts;
    this.#chance = new Chance(parts.seed, "relay cluster");
  }

  start(): void {
    const { nodes, more, world } = this.#parts;
    for (let place = 0; place < nodes; place += 1) this.#boot(place);
    if (more !== null) world.after(more.afterMs, () => this.#boot(nodes));
    this.#awaitEvent();
  }

  /** An app that only asks; it is never killed. */
  client(): Member {
    return this.#open("client", false, {});
  }

  async stop(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#places.map((member) => this.#stop(member)));
  }

  #boot(place: number): void {
    if (this.#over) return;
    this.#lives += 1;
    const { nodes, more, settings } = this.#parts;
    // As in a rolling deployment: whoever comes after the first nodes has the new number.
    const asks = more !== null && this.#lives > nodes ? { partitions: more.partitions } : {};
    const relay = { ...settings.relay, ...asks };
    const member = this.#open(`n${place + 1}.${this.#lives}`, true, { relay });
    this.#places[place] = member;
    member.process.onCrash = (why) => {
      this.#parts.history.fault(member.process.name, `crash ${why}`);
      this.#replace(place);
    };
    void this.#run(member);
  }

  #replace(place: number): void {
    const { world, weather } = this.#parts;
    world.after(this.#chance.real(0.05, 1.5) * weather.leaseMs, () => this.#boot(place));
  }

  async #run(member: Member): Promise<void> {
    this.#parts.history.tell(member.process.name, "boots");
    while (!member.started && member.stopping === null) {
      try {
        await member.app.start({ roles: ["relay"] });
        member.started = true;
      } catch {
        await sleep(member.process.clock, 500);
      }
    }
  }

  #open(name: string, mayCrash: boolean, own: Pick<EscapementOptions, "relay">): Member {
    const { seed, world, history, witness, weather, settings, bug, dispatchTimeoutMs } = this.#parts;
    const process = new SimulatedProcess(name, world, new Chance(seed, `process ${name}`));
    const chance = new Chance(seed, `weather of ${name}`);
    const outlet = simulatedTransport({ process, world, chance, weather, history, witness });
    const link = { isCut: false };
    const store: StoreFactory = {
      open: async (context) => {
        const raw = await this.#parts.store.open(context);
        const far = this.#wire(bug?.below?.(raw) ?? raw, process, chance, mayCrash, link);
        return bug?.above?.(far) ?? far;
      },
    };
    const route = { transport: outlet, destination: "topic", dispatchTimeoutMs };
    const jobs = [
      defineJob<unknown>({ name: "least", route }),
      defineJob<unknown>({ name: "once", delivery: "at-most-once", route }),
      defineJob<unknown>({ name: "effect", delivery: "effectively-once", route, queue: "effects" }),
    ];
    const app = new Escapement({ ...settings, ...own, store, jobs, log: silentLogger }, process.runtime);
    app.on("error", () => {});
    app.on("dispatchRetry", ({ job, phase }) => {
      if (phase === "rollback_write") history.unwritten.add(refOf(job));
    });
    const definitions = new Map(jobs.map((job) => [job.name, job]));
    return { process, app, definitions, link, outlet, stopping: null, started: false };
  }

  /** Every call is one message there and one back, and the seed may do what it likes to each. */
  #wire(
    store: Store,
    process: SimulatedProcess,
    chance: Chance,
    mayCrash: boolean,
    link: { isCut: boolean },
  ): Store {
    const { world, weather, history, witness } = this.#parts;
    const unavailable = (what: string): EscapementError => new EscapementError("store-unavailable", what);
    const call = <T>(verb: string, params: unknown, apply: () => Promise<T>): Promise<T> => {
      if (!process.alive) return never();
      const plan = weather.call(chance, mayCrash);
      if (plan.fault === "crash-before") {
        process.crash(`before ${verb}`);
        return never();
      }
      return new Promise((resolve, reject) => {
        const answer = (callback: () => void): void =>
          void world.after(plan.backMs, () => process.deliver("io", callback));
        const reach = async (): Promise<void> => {
          if (!process.alive) return;
          if (link.isCut || plan.fault === "refuse") {
            history.fault(process.name, `refused ${verb}`);
            return answer(() => reject(unavailable(`${verb} was refused`)));
          }
          try {
            const result = await apply();
            witness.done(process.name, verb, params, result);
            if (plan.fault === "crash-between") return process.crash(`after the store had done ${verb}`);
            if (plan.fault === "lose" || plan.fault === "part" || link.isCut) {
              history.fault(process.name, `lost the reply to ${verb}`);
              return answer(() => reject(unavailable(`the reply to ${verb} was lost`)));
            }
            answer(() => {
              resolve(result);
              if (plan.fault === "crash-after") process.clock.defer(() => process.crash(`after ${verb}`));
            });
          } catch (error) {
            answer(() => reject(error));
          }
        };
        world.after(plan.thereMs, () => void reach());
      });
    };
    return new Proxy(store, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== "function") return value;
        if (property === "close") return () => target.close();
        if (property === "subscribe") {
          const guarded = (listener: (notice: Notice) => void) => (notice: Notice) => {
            const { fault, thereMs } = weather.call(chance, false);
            if (fault === "none" && !link.isCut)
              world.after(thereMs, () => process.deliver("io", () => listener(notice)));
          };
          return (listener: (notice: Notice) => void) =>
            call("subscribe", null, () => target.subscribe(guarded(listener)));
        }
        return (params: unknown) => call(String(property), params, () => value.call(target, params));
      },
    });
  }

  // ── What befalls them ──

  #awaitEvent(): void {
    const { world, weather } = this.#parts;
    world.after(this.#chance.real(0.2, 1.8) * weather.climate.everyMs, () => {
      if (weather.quiet) return;
      this.#event(this.#chance.integer(0, this.#places.length - 1));
      this.#awaitEvent();
    });
  }

  #event(place: number): void {
    const { weather, history } = this.#parts;
    const member = this.#places[place];
    if (member === undefined || !member.process.alive) return;
    const { process, link, outlet } = member;
    const kind = this.#chance.weighted(weather.climate.events);
    const both = this.#chance.pick(["store", "broker", "both"]);
    if (kind !== "step-clock") history.fault(process.name, kind === "outage" ? `cut off from ${both}` : kind);
    if (kind === "crash") process.crash("by the weather");
    if (kind === "step-clock") process.stepClock(this.#chance.integer(-300_000, 300_000));
    if (kind === "pause" && !process.paused) {
      process.pause();
      this.#later(3.5, () => process.resume());
    }
    if (kind === "outage") {
      link.isCut = both !== "broker";
      outlet.isCut = both !== "store";
      this.#later(1.6, () => {
        link.isCut = false;
        outlet.isCut = false;
      });
    }
    if (kind === "stop" && member.started && member.stopping === null) {
      void this.#stop(member).then((stopped) => stopped && this.#replace(place));
    }
  }

  #later(mostLeases: number, callback: () => void): void {
    const { world, weather } = this.#parts;
    world.after(this.#chance.real(0.1, mostLeases) * weather.leaseMs, callback);
  }

  async #stop(member: Member): Promise<boolean> {
    const { process, app } = member;
    if (!process.alive) return false;
    member.stopping ??= app.stop({ timeout: this.#chance.real(0, 1.5) * this.#parts.weather.leaseMs });
    await Promise.race([member.stopping, process.death]);
    if (!process.alive) return false;
    this.#parts.history.tell(process.name, "has stopped");
    process.exit();
    return true;
  }
}
