import type { Clock } from "../../clock.ts";
import type { Store, StoreContext, StoreFactory } from "../../store.ts";
import { nextChangeAt } from "./next-change.ts";
import { type Moment, Space } from "./space.ts";
import { MemoryStore } from "./store.ts";

/** The handle that `tx` gives on this store. */
export type { MemoryTransaction } from "./transaction.ts";

export interface MemoryOptions {
  /**
   * The store's clock, for simulations in which every node has a clock of its own.
   *
   * @default the clock of whoever opens it
   */
  readonly clock?: Clock;
}

/** A store in this process's memory. Everything opened through the same object shares its data. */
export interface MemoryStoreFactory extends StoreFactory {
  /** What the committed transactions of a namespace have written. */
  effects(namespace: string): ReadonlyMap<string, unknown>;
  /**
   * When time alone can next change something in a namespace, so that a test may skip the time until then. Null: never; `now` or before:
   * nobody can say.
   */
  nextChangeAt(namespace: string, moment: Moment): number | null;
}

/**
 * Keeps everything in memory: for tests and simulations, and as the executable specification of the store contract.
 *
 * @example
 * const app = createEscapement({ store: memory(), jobs: [invoice] });
 */
export function memory(options: MemoryOptions = {}): MemoryStoreFactory {
  const spaces = new Map<string, Space>();
  const spaceOf = (namespace: string): Space => {
    const space = spaces.get(namespace) ?? new Space(namespace);
    spaces.set(namespace, space);
    return space;
  };
  return {
    async open(context: StoreContext): Promise<Store> {
      return new MemoryStore(spaceOf(context.namespace), options.clock ?? context.clock);
    },
    effects: (namespace) => new Map(spaceOf(namespace).effects),
    nextChangeAt: (namespace, moment) => nextChangeAt(spaceOf(namespace), moment),
  };
}
