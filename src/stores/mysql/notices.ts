import type { Clock } from "../../clock.ts";
import type { Notice } from "../../store/notices.ts";
import type { StoreContext } from "../../store/opening.ts";

/** How this process's handles on one namespace learn of each other's changes; what other processes do, they find out by asking. */
export interface Hub {
  publish(notices: readonly Notice[], clock: Clock): void;
  subscribe(listener: (notice: Notice) => void): () => void;
}

const listenersOf = new Map<string, Set<(notice: Notice) => void>>();

export function hubOf(place: string, { log }: StoreContext): Hub {
  return {
    publish(notices, clock) {
      const listeners = listenersOf.get(place);
      if (notices.length === 0 || listeners === undefined) return;
      clock.defer(() => {
        for (const listener of listeners) {
          try {
            for (const notice of notices) listener(notice);
          } catch (error) {
            log.error({ error }, "a listener for notices of the store failed");
          }
        }
      });
    },
    subscribe(listener) {
      const listeners = listenersOf.get(place) ?? new Set();
      listenersOf.set(place, listeners);
      // A separate function for each subscription: the same listener may be passed twice.
      const own = (notice: Notice): void => listener(notice);
      listeners.add(own);
      return () => {
        listeners.delete(own);
        if (listeners.size === 0 && listenersOf.get(place) === listeners) listenersOf.delete(place);
      };
    },
  };
}
