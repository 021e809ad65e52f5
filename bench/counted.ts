import type { StoreFactory } from "../src/store/opening.ts";
import type { Store } from "../src/store/store.ts";

/** The same store, with a count of how often each verb is called: a rate is understood by its trips. */
export function counted(factory: StoreFactory): { store: StoreFactory; calls(verb: keyof Store): number } {
  const counts = new Map<PropertyKey, number>();
  const count = (store: Store): Store =>
    new Proxy(store, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          counts.set(key, (counts.get(key) ?? 0) + 1);
          return value.apply(target, args);
        };
      },
    });
  return {
    store: { open: async (context) => count(await factory.open(context)) },
    calls: (verb) => counts.get(verb) ?? 0,
  };
}
