/** Told by the compiler where a type names something that JSON does not carry. */
export type NotJson =
  "JSON does not carry this: give the job a schema that turns it back, or declare what arrives";

/**
 * What an input may be declared as where no schema turns it back: itself where JSON carries it, and {@link NotJson} in place of each `Date`,
 * `Map`, `bigint`, function and the like, which a handler would not get as declared.
 */
export type JsonSafe<T> = unknown extends T
  ? T
  : T extends string | number | boolean | null | undefined | Nothing
    ? T
    : T extends bigint | symbol | ((...values: never[]) => unknown) | { toJSON(...values: never[]): unknown }
      ? NotJson
      : { [K in keyof T]: JsonSafe<T[K]> };

/** What is left of a result when it is read back: dates are strings, what has no JSON is null or missing. */
export type Jsonified<T> = unknown extends T
  ? T
  : T extends string | number | boolean | null
    ? T
    : T extends bigint
      ? never
      : T extends undefined | Nothing | symbol | ((...values: never[]) => unknown)
        ? null
        : T extends { toJSON(...values: never[]): infer J }
          ? Jsonified<J>
          : T extends readonly unknown[]
            ? { [K in keyof T]: Jsonified<T[K]> }
            : {
                [K in keyof T as T[K] extends symbol | ((...values: never[]) => unknown)
                  ? never
                  : K]: Property<T[K]>;
              };

/** A property without a value is left out. */
type Property<T> = T extends undefined ? undefined : Jsonified<T>;

/** What a function returns that returns nothing. */
type Nothing = ReturnType<() => void>;
