/** An object with some of its methods replaced. */
export function override<T extends object>(target: T, replaced: Partial<T>): T {
  return new Proxy(target, {
    get: (original, property) => {
      if (property in replaced) return Reflect.get(replaced, property);
      const value: unknown = Reflect.get(original, property, original);
      return typeof value === "function" ? value.bind(original) : value;
    },
  });
}
