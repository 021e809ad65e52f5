import { Escapement } from "../../../src/app/escapement.ts";
import { sleep } from "../../../src/clock.ts";
import { silentLogger } from "../../../src/log.ts";
import type { EscapementOptions } from "../../../src/settings.ts";
import type { StoreContext, StoreFactory } from "../../../src/store/opening.ts";
import type { Store } from "../../../src/store/store.ts";
import { Chance } from "../../../src/testing/chance.ts";
import type { VirtualClock } from "../../../src/testing/virtual-clock.ts";
import { defineJobs } from "./handlers.ts";
import { type Fault, type History, refOf } from "./history.ts";
import { NodeWitness } from "./node-witness.ts";
import type { PlantedBug } from "./planted-bugs.ts";
import { SimulatedProcess } from "./simulated-process.ts";
import type { StoreWitness } from "./store-witness.ts";
import type { Weather } from "./weather.ts";
import { Wire } from "./wire.ts";

export interface ClusterParts {
  readonly seed: number;
  readonly world: VirtualClock;
  readonly history: History;
  readonly weather: Weather;
  readonly witness: StoreWitness;
  readonly store: StoreFactory;
  readonly settings: Omit<EscapementOptions, "store" | "jobs" | "log">;
  readonly nodes: number;
  readonly bug: PlantedBug | null;
}

/** All that a process can be; a new role comes to the simulation by its name here, and by a witness of what it promises. */
const roles = ["worker", "planner", "reaper"] as const;

interface Member {
  readonly process: SimulatedProcess;
  readonly app: Escapement;
  readonly wire: Wire;
  stopping: Promise<void> | null;
  started: boolean;
}

/** The nodes, and what befalls them. A place whose process has died gets a new one after a while. */
export class Cluster {
  readonly #parts: ClusterParts;
  readonly #chance: Chance;
  readonly #places: Member[] = [];
  #lives = 0;
  #over = false;

  constructor(parts: ClusterParts) {
    this.#parts = parts;
    this.#chance = new Chance(parts.seed, "cluster");
  }

  start(): void {
    for (let place = 0; place < this.#parts.nodes; place += 1) this.#boot(place);
    this.#awaitEvent();
  }

  /** An app that only asks; it is never killed. */
  client(): Member {
    return this.#open("client", false);
  }

  /** From now on nothing goes wrong: what is dead is started, what is paused is woken, what is cut is reconnected. */
  calm(): void {
    const { weather, history } = this.#parts;
    weather.quiet = true;
    history.tell("world", "is quiet from now on");
  }

  /** Stops every node as a deployment does. */
  async stop(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#places.map((member) => this.#stop(member, 60_000)));
  }

  #boot(place: number): void {
    if (this.#over) return;
    this.#lives += 1;
    const member = this.#open(`n${place + 1}.${this.#lives}`, true);
    const { process } = member;
    this.#places[place] = member;
    process.onCrash = (why) => {
      this.#parts.history.fault(process, `crash ${why}`, Number.POSITIVE_INFINITY);
      this.#replace(place);
    };
    void this.#run(member);
  }

  #replace(place: number): void {
    const afterMs =
      this.#chance.real(0.05, this.#parts.weather.quiet ? 0.2 : 1.5) * this.#parts.weather.leaseMs;
    this.#parts.world.after(afterMs, () => this.#boot(place));
  }

  async #run(member: Member): Promise<void> {
    const { process, app } = member;
    this.#parts.history.tell(process.name, "boots");
    while (!member.started && member.stopping === null) {
      try {
        await app.start({ roles });
        member.started = true;
      } catch {
        // The store did not answer; whoever runs a service tries again, under a new name.
        process.claimer = null;
        await sleep(process.clock, 500);
      }
    }
  }

  #open(name: string, mayCrash: boolean): Member {
    const { seed, world, history, weather, witness, settings, bug } = this.#parts;
    const process = new SimulatedProcess(name, world, new Chance(seed, `process ${name}`));
    const chance = new Chance(seed, `weather of ${name}`);
    const nodeWitness = new NodeWitness(process, history, witness);
    const wire = new Wire({
      process,
      world,
      chance,
      weather,
      history,
      storeWitness: witness,
      nodeWitness,
      mayCrash,
    });
    const reach = (store: Store): Store => {
      const far = wire.around(bug?.below?.(store) ?? store);
      return bug?.above?.(far) ?? far;
    };
    const store: StoreFactory = {
      open: async (context: StoreContext) => reach(await this.#parts.store.open(context)),
    };
    const jobs = defineJobs({ process, history, weather, chance, witness: nodeWitness, app: () => app });
    const app: Escapement = new Escapement({ ...settings, store, jobs, log: silentLogger }, process.runtime);
    return { process, app, wire, stopping: null, started: false };
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
    const { process, wire } = member;
    switch (this.#chance.weighted(weather.climate.events)) {
      case "crash":
        return process.crash("by the weather");
      case "pause": {
        if (process.paused) return;
        process.pause();
        return this.#forAWhile(history.fault(process, "paused", Number.POSITIVE_INFINITY), 3.5, () =>
          process.resume(),
        );
      }
      case "outage": {
        wire.cut = true;
        return this.#forAWhile(history.fault(process, "cut off", Number.POSITIVE_INFINITY), 1.6, () => {
          wire.cut = false;
        });
      }
      case "blackout":
        return this.#blackOut();
      case "stop":
        return this.#deploy(place, member);
      case "step-clock":
        return process.stepClock(this.#chance.integer(-300_000, 300_000));
    }
  }

  /** Calls that are made meanwhile fail, or lie in the store until it goes on. */
  #blackOut(): void {
    const { weather, history } = this.#parts;
    if (weather.blackout !== null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    weather.blackout = promise;
    const alive = this.#places.filter(({ process }) => process.alive);
    const faults = alive.map(({ process }) => history.fault(process, "blackout", Number.POSITIVE_INFINITY));
    const [first] = faults;
    if (first === undefined) return;
    this.#forAWhile(first, 3, () => {
      for (const fault of faults) fault.to = history.now;
      weather.blackout = null;
      resolve();
    });
  }

  #forAWhile(fault: Fault, mostLeases: number, end: () => void): void {
    const { world, weather, history } = this.#parts;
    world.after(this.#chance.real(0.1, mostLeases) * weather.leaseMs, () => {
      fault.to = history.now;
      history.tell(fault.process.name, `no longer ${fault.kind}`);
      end();
    });
  }

  #deploy(place: number, member: Member): void {
    if (member.stopping !== null || !member.started) return;
    const timeoutMs = this.#chance.real(0, 1.5) * this.#parts.weather.leaseMs;
    void this.#stop(member, timeoutMs).then((stopped) => {
      if (stopped) this.#replace(place);
    });
  }

  /** Stops one node gracefully; nothing may be left active in its name. Returns false when it died meanwhile. */
  async #stop(member: Member, timeoutMs: number): Promise<boolean> {
    const { process, app } = member;
    const { history, weather, witness } = this.#parts;
    if (!process.alive) return false;
    const fault = history.fault(process, "stopping", Number.POSITIVE_INFINITY);
    member.stopping ??= app.stop({ timeout: timeoutMs });
    await Promise.race([member.stopping, process.death]);
    if (!process.alive) return false;
    fault.to = history.now;
    history.tell(process.name, "has stopped");
    process.exit();
    const left = [...witness.current.values()].filter(
      (job) =>
        job.state === "active" &&
        job.claimer === process.claimer &&
        (history.claims.get(refOf(job))?.leaseUntil ?? 0) > history.now,
    );
    // A store that fails for longer than the lease must not keep a process from ending.
    const unreachable =
      history.now - fault.from >= weather.leaseMs &&
      history.faults.some((one) => one !== fault && one.process === process && one.to >= fault.from);
    if (left.length > 0 && !unreachable) {
      history.violate(
        "a graceful stop leaves nothing active",
        `${process.name} left ${left.map(({ id }) => id).join(", ")}`,
      );
    }
    return true;
  }
}
