import { EscapementError } from "../../src/errors.ts";
import type { TransactParams } from "../../src/store/claims.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import type { Store } from "../../src/store/store.ts";

type Verb = Exclude<keyof Store, "capabilities" | "address">;

/**
 * `refuse`: the call never reaches the store. `lose-reply`: it does, and the answer is lost. `stall`: it reaches the store when that is healed,
 * those that reap before all others. `break-off`, for `transact`: the caller's function has run when the connection breaks, and the store
 * undoes everything.
 */
export type Fault = "refuse" | "lose-reply" | "stall" | "break-off";

/** A store whose calls fail when they are told to, as a network does. */
export class FaultyStore implements StoreFactory {
  readonly #inner: StoreFactory;
  readonly #faults = new Map<Verb, { fault: Fault; times: number }>();
  /** Every call that was made, by verb. */
  readonly calls: Verb[] = [];
  #stalled: { readonly verb: Verb; readonly go: () => void }[] = [];

  constructor(inner: StoreFactory) {
    this.#inner = inner;
  }

  /** From now on, the next `times` calls of these verbs fail. */
  fail(fault: Fault, verbs: readonly Verb[], times = Number.POSITIVE_INFINITY): void {
    for (const verb of verbs) this.#faults.set(verb, { fault, times });
  }

  heal(): void {
    this.#faults.clear();
    const stalled = this.#stalled.toSorted((a, b) => Number(b.verb === "reap") - Number(a.verb === "reap"));
    this.#stalled = [];
    for (const { go } of stalled) go();
  }

  async open(context: Parameters<StoreFactory["open"]>[0]): Promise<Store> {
    const store = await this.#inner.open(context);
    return new Proxy(store, {
      get: (_, key) => {
        const value: unknown = Reflect.get(store, key, store);
        if (typeof value !== "function") return value;
        return (...params: unknown[]) =>
          this.#call(
            key as Verb,
            () => value.apply(store, params),
            () => breakOff(store, params[0] as TransactParams<unknown>),
          );
      },
    });
  }

  async #call(
    verb: Verb,
    call: () => Promise<unknown>,
    callBroken: () => Promise<unknown>,
  ): Promise<unknown> {
    this.calls.push(verb);
    const planned = this.#faults.get(verb);
    if (planned === undefined || planned.times <= 0) return call();
    planned.times -= 1;
    if (planned.fault === "stall") {
      await new Promise<void>((go) => this.#stalled.push({ verb, go }));
      return call();
    }
    if (planned.fault === "lose-reply") await call();
    if (planned.fault === "break-off") await callBroken();
    throw new EscapementError("store-unavailable", `the connection broke (${planned.fault})`);
  }
}

async function breakOff(store: Store, params: TransactParams<unknown>): Promise<void> {
  const broken = new Error("the end of the transaction was never sent");
  const encode = (value: unknown): never => {
    params.encode(value);
    throw broken;
  };
  await store.transact({ ...params, encode }).catch((error: unknown) => {
    if (error !== broken) throw error;
  });
}
