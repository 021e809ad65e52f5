import type { Store } from "../../src/store.ts";

/** A store with some of its verbs replaced. */
export function override(store: Store, verbs: Partial<Store>): Store {
  return new Proxy(store, {
    get: (target, property) => {
      if (property in verbs) return Reflect.get(verbs, property);
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
