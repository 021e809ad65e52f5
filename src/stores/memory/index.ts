import type { Clock } from "../../clock.ts";
import type { StoreContext, StoreFactory } from "../../store/opening.ts";
import type { Store } from "../../store/store.ts";
import { Data } from "./data/data.ts";
import { nextChangeAt } from "./data/next-change.ts";
import type { Moment } from "./session.ts";
import { openMemoryStore } from "./store.ts";

/** The handle that `tx` provides on this store. */
export type { MemoryTransaction } from "./transact.ts";

export interface MemoryOptions {
  /**
   * The store's clock, for simulations in which every node has its own clock.
   *
   * @default the clock of the process that opens it
   */
  readonly clock?: Clock;
}

/** A store in this process's memory. Everything opened through the same object shares its data. */
export interface MemoryStoreFactory extends StoreFactory {
  /** What the committed transactions of a namespace have written. */
  effects(namespace: string): ReadonlyMap<string, unknown>;
  /**
   * When time alone can next change something in a namespace, so a test may skip the time until then. Null: never; `now` or before:
   * unknown.
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
  const namespaces = new Map<string, Data>();
  const dataOf = (namespace: string): Data => {
    const data = namespaces.get(namespace) ?? new Data(namespace);
    namespaces.set(namespace, data);
    return data;
  };
  return {
    async open(context: StoreContext): Promise<Store> {
      return openMemoryStore(dataOf(context.namespace), options.clock ?? context.clock);
    },
    effects: (namespace) => new Map(dataOf(namespace).effects),
    nextChangeAt: (namespace, moment) => nextChangeAt(dataOf(namespace), moment),
  };
}
