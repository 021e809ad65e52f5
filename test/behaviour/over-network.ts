import type { Clock } from "../../src/clock.ts";
import type { Notice } from "../../src/store/notices.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import type { Store } from "../../src/store/store.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";

/** What may have changed after these verbs; nobody knows better from outside. */
const anything: readonly Notice[] = [
  { kind: "jobs", queues: null },
  { kind: "ended", ids: null },
  { kind: "schedules" },
];
const changing: ReadonlySet<PropertyKey> = new Set<keyof Store>([
  "enqueue",
  "update",
  "cancel",
  "redrive",
  "finish",
  "step",
  "reap",
  "configureQueue",
  "putSchedule",
  "removeSchedule",
  "fire",
  "checkpoint",
]);

interface NetworkStore extends StoreFactory {
  /** Ends the connections of apps that a test left for dead. */
  closeAll(): Promise<void>;
}

/**
 * A store on a real server for tests on a virtual clock: it goes by their clock, time stands still while a call is on its way, and
 * notices come when a call has been answered, not some real milliseconds later.
 */
export function overNetwork(make: (clock: Clock) => StoreFactory): NetworkStore {
  const opened: Store[] = [];
  const listeners = new Set<(notices: readonly Notice[]) => void>();
  const tell = (notices: readonly Notice[]): void => {
    for (const listener of listeners) listener(notices);
  };
  return {
    async open(context) {
      const { clock } = context;
      const during = <T>(call: Promise<T>): Promise<T> => {
        if (clock instanceof VirtualClock) clock.standStill(call);
        return call;
      };
      const store = await during(make(clock).open(context));
      opened.push(store);
      const subscribe: Store["subscribe"] = async (listener) => {
        const own = (notices: readonly Notice[]): void =>
          clock.defer(() => {
            if (listeners.has(own)) for (const notice of notices) listener(notice);
          });
        listeners.add(own);
        return async () => void listeners.delete(own);
      };
      return new Proxy(store, {
        get(_, key) {
          if (key === "subscribe") return subscribe;
          const value: unknown = Reflect.get(store, key, store);
          if (typeof value !== "function") return value;
          return (...params: unknown[]) => during(called(key, value.apply(store, params)));
        },
      });
    },
    async closeAll() {
      await Promise.all(opened.map((store) => store.close()));
    },
  };

  async function called(verb: PropertyKey, call: Promise<unknown>): Promise<unknown> {
    const answer = await call;
    if (verb === "cancel") tell(cancelNotices(answer as Awaited<ReturnType<Store["cancel"]>>));
    if (changing.has(verb) && !isIdle(verb, answer)) tell(anything);
    // Workers give back what they claimed ahead: told after each trip, they would claim and give back without end.
    if (verb === "configureQueue") tell([{ kind: "queues" }]);
    return answer;
  }
}

/** A claim alone changes nothing for others; telling of it would have everybody claim for ever. Neither does a look for silent nodes. */
function isIdle(verb: PropertyKey, answer: unknown): boolean {
  if (verb === "step") return (answer as Awaited<ReturnType<Store["step"]>>).finished.length === 0;
  return verb === "reap" && (answer as Awaited<ReturnType<Store["reap"]>>).reaped.length === 0;
}

function cancelNotices({ results }: Awaited<ReturnType<Store["cancel"]>>): Notice[] {
  const ids = results.filter(({ outcome }) => outcome === "requested").map(({ id }) => id);
  return ids.length === 0 ? [] : [{ kind: "cancel", ids }];
}
