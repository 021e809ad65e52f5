import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob } from "../../src/index.ts";
import type { Notice } from "../../src/store/notices.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import type { Store } from "../../src/store/store.ts";
import { onEveryStore } from "./stores.ts";

/** A store whose channel a stranger can write to: what `forge` says is heard like the store's own notices. */
function withForgedNotices(inner: StoreFactory): { store: StoreFactory; forge(notice: Notice): void } {
  const listeners = new Set<(notice: Notice) => void>();
  const open = async (context: Parameters<StoreFactory["open"]>[0]): Promise<Store> => {
    const store = await inner.open(context);
    const subscribe: Store["subscribe"] = (listener) => {
      listeners.add(listener);
      return store.subscribe(listener);
    };
    return new Proxy(store, {
      get(_, key) {
        if (key === "subscribe") return subscribe;
        const value: unknown = Reflect.get(store, key, store);
        return typeof value === "function" ? value.bind(store) : value;
      },
    });
  };
  return {
    store: { open },
    forge: (notice) => {
      for (const listener of listeners) listener(notice);
    },
  };
}

onEveryStore("notices that the store did not send", (bed) => {
  test("a forged cancel stops no handler; a real one does", async () => {
    const started = { victim: Promise.withResolvers<void>(), other: Promise.withResolvers<void>() };
    const stopped: string[] = [];
    const release = Promise.withResolvers<void>();
    const hold = defineJob<"victim" | "other">({
      name: "hold",
      delivery: "at-most-once",
      async run({ input, signal }) {
        const aborted = new Promise<void>((resolve) =>
          signal.addEventListener("abort", () => {
            stopped.push(input);
            resolve();
          }),
        );
        started[input].resolve();
        await Promise.race([aborted, release.promise]);
      },
    });
    const { store, forge } = withForgedNotices(bed.store());
    await using app = await bed.app({ store, jobs: [hold], acceptWeakDurability: true });
    await app.enqueue(hold, "victim", { id: "victim" });
    await app.enqueue(hold, "other", { id: "other" });
    await Promise.all([started.victim.promise, started.other.promise]);
    forge({ kind: "cancel", ids: ["victim"] });
    await app.cancel("other");
    forge({ kind: "cancel", ids: ["victim", "other"] });
    while (stopped.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual(stopped, ["other"]);
    release.resolve();
    await app.runUntilIdle();
    assert.equal((await app.get("victim"))?.state, "succeeded");
  });
});
