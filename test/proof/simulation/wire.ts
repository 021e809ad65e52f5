import { EscapementError } from "../../../src/errors.ts";
import type { FinishParams, StepParams, TransactParams } from "../../../src/store/claims.ts";
import type { EnqueueParams } from "../../../src/store/jobs.ts";
import type { Notice } from "../../../src/store/notices.ts";
import type { FireParams } from "../../../src/store/schedules.ts";
import type { Store } from "../../../src/store/store.ts";
import type { Chance } from "../../../src/testing/chance.ts";
import type { VirtualClock } from "../../../src/testing/virtual-clock.ts";
import type { History } from "./history.ts";
import type { NodeWitness } from "./node-witness.ts";
import { never, type SimulatedProcess } from "./simulated-process.ts";
import type { StoreWitness } from "./store-witness.ts";
import type { CallPlan, Weather } from "./weather.ts";

export interface WireParts {
  readonly process: SimulatedProcess;
  readonly world: VirtualClock;
  readonly chance: Chance;
  readonly weather: Weather;
  readonly history: History;
  readonly storeWitness: StoreWitness;
  readonly nodeWitness: NodeWitness;
  /** Whether calls of this process may take it down. */
  readonly mayCrash: boolean;
}

/** A delay that is worth being called a fault, in leases. */
const noticeableDelay = 0.05;

/** The way between one process and the store. Every call is one message there and one back, and the seed may do what it likes to each. */
export class Wire {
  readonly #parts: WireParts;
  /** The store cannot be reached. */
  cut = false;

  constructor(parts: WireParts) {
    this.#parts = parts;
  }

  /** The store as this process sees it. */
  around(store: Store): Store {
    return new Proxy(store, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== "function") return value;
        // Hanging up needs no answer.
        if (property === "close") return () => target.close();
        if (property === "subscribe") {
          return (listener: (notice: Notice) => void) =>
            this.#call("subscribe", null, () => target.subscribe(this.#guarded(listener)));
        }
        const verb = String(property);
        return (params: unknown) =>
          this.#call(verb, params, (part) =>
            part === null ? value.call(target, params) : this.#doPart(target, part),
          );
      },
    });
  }

  /** The store does a part of what it is asked, which the witness sees as a call of its own. */
  async #doPart(store: Store, { verb, params }: Part): Promise<never> {
    const { process, storeWitness, history } = this.#parts;
    const apply = (): Promise<unknown> => Reflect.apply(Reflect.get(store, verb), store, [params]);
    await storeWitness
      .apply(process, verb, params, apply)
      .finally(() => history.fault(process, `a part of ${verb}`));
    throw unavailable(`only a part of ${verb} was done`);
  }

  #call<T>(verb: string, params: unknown, apply: Apply<T>): Promise<T> {
    const { process, weather, chance, history, nodeWitness, world, mayCrash } = this.#parts;
    if (!process.alive) return never();
    nodeWitness.sent(verb, params);
    const plan = weather.call(chance, mayCrash);
    if (plan.fault === "crash-before") {
      process.crash(`before ${verb}`);
      return never();
    }
    const isSlow = Math.max(plan.thereMs, plan.backMs) > noticeableDelay * weather.leaseMs;
    const slow = isSlow
      ? history.fault(process, `slow ${verb}`, history.now + plan.thereMs + plan.backMs)
      : null;
    const returned = new Promise<T>((resolve, reject) => {
      world.after(plan.thereMs, () => {
        if (!process.alive) return;
        const { blackout } = weather;
        const dark = blackout === null ? "" : "blackout: ";
        if (this.cut || plan.fault === "refuse" || (blackout !== null && chance.happens(0.5))) {
          history.fault(process, `${this.cut ? "" : dark}refused ${verb}`, history.now + plan.backMs);
          this.#answer(plan, () => reject(unavailable(`${verb} was refused`)));
        } else {
          void this.#lie(verb, blackout)
            .then(() => {
              // The way back is still before it.
              if (slow !== null) slow.to = Math.max(slow.to, history.now + plan.backMs);
              return this.#reach(verb, params, apply, plan);
            })
            .then(resolve, reject);
        }
      });
    });
    const note = (): void => nodeWitness.returned(verb, params);
    returned.then(note, note);
    return returned;
  }

  /** A store that stalls does what it was asked when it goes on, one after the other and in no particular order. */
  async #lie(verb: string, blackout: Promise<void> | null): Promise<void> {
    if (blackout === null) return;
    const { history, process, world, chance } = this.#parts;
    const fault = history.fault(process, `blackout: ${verb} lies`, Number.POSITIVE_INFINITY);
    await blackout;
    await new Promise<void>((resolve) => world.after(chance.real(0.1, 15), resolve));
    fault.to = history.now;
    if (!process.alive) return never();
  }

  /** The call has reached the store. */
  async #reach<T>(verb: string, params: unknown, apply: Apply<T>, plan: CallPlan): Promise<T> {
    const { process, history, storeWitness, nodeWitness } = this.#parts;
    const part = plan.fault === "part" ? partOf(verb, params) : null;
    const done = part === null ? storeWitness.apply(process, verb, params, () => apply(null)) : apply(part);
    const result = await done.catch((error: unknown) => {
      // The store itself refused; that answer travels back as well.
      return new Promise<T>((_, reject) => this.#answer(plan, () => reject(error)));
    });
    if (!process.alive) return never();
    if (plan.fault === "crash-between") {
      process.crash(`after the store had done ${verb}`);
      return never();
    }
    const mine = nodeWitness.heldInStore(verb);
    return new Promise((resolve, reject) => {
      this.#answer(plan, () => {
        const dark = this.#parts.weather.blackout !== null;
        if (plan.fault === "lose" || this.cut || dark) {
          history.fault(process, `${dark && !this.cut ? "blackout: " : ""}lost the reply to ${verb}`);
          return reject(unavailable(`the reply to ${verb} was lost`));
        }
        nodeWitness.answered(verb, params, result, mine);
        resolve(result);
        // What the answer brings is begun; the next await is its last.
        if (plan.fault === "crash-after") process.clock.defer(() => process.crash(`after ${verb}`));
      });
    });
  }

  #answer(plan: CallPlan, callback: () => void): void {
    const { world, process } = this.#parts;
    world.after(plan.backMs, () => process.deliver("io", callback));
  }

  /** Hints may be late, and may be lost. */
  #guarded(listener: (notice: Notice) => void): (notice: Notice) => void {
    const { world, process, chance, weather } = this.#parts;
    return (notice) => {
      const { fault, thereMs } = weather.call(chance, false);
      if (fault !== "none" || this.cut || weather.blackout !== null) return;
      world.after(thereMs, () => process.deliver("io", () => listener(notice)));
    };
  }
}

interface Part {
  readonly verb: string;
  readonly params: unknown;
}

/** Does a call, or only a part of it. */
type Apply<T> = (part: Part | null) => Promise<T>;

/** The first half of a batch, or a transaction up to its commit; null where there is nothing to divide, or a caller's transaction holds it together. */
function partOf(verb: string, params: unknown): Part | null {
  const half = <E>(entries: readonly E[]): readonly E[] => entries.slice(0, Math.ceil(entries.length / 2));
  switch (verb) {
    case "enqueue": {
      const { jobs, tx } = params as EnqueueParams;
      return tx === undefined ? { verb, params: { jobs: half(jobs) } } : null;
    }
    case "finish": {
      const { claimer, finishes } = params as FinishParams;
      return { verb, params: { claimer, finishes: half(finishes) } };
    }
    case "step": {
      const { finishes, claim } = params as StepParams;
      if (finishes.length === 0) return null;
      return { verb: "finish", params: { claimer: claim.claimer, finishes: half(finishes) } };
    }
    case "fire": {
      const { node, fires } = params as FireParams;
      return { verb, params: { node, fires: half(fires) } };
    }
    case "transact": {
      const encode = (): never => {
        throw unavailable("the transaction was rolled back");
      };
      return { verb, params: { ...(params as TransactParams<unknown>), encode } };
    }
    default:
      return null;
  }
}

function unavailable(message: string): EscapementError {
  return new EscapementError("store-unavailable", message);
}
