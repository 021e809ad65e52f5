import type { Clock } from "../../clock.ts";
import type { Notice } from "../../store/notices.ts";
import type { StoreContext } from "../../store/opening.ts";
import { Listeners } from "../listeners.ts";

/** How this process's handles on one namespace learn of each other's changes; what other processes do, they find out by asking. */
export interface Hub {
  publish(notices: readonly Notice[], clock: Clock): void;
  subscribe(listener: (notice: Notice) => void): () => void;
}

const listenersOf = new Map<string, Listeners>();

export function hubOf(place: string, { log }: StoreContext): Hub {
  return {
    publish(notices, clock) {
      const listeners = listenersOf.get(place);
      if (notices.length === 0 || listeners === undefined) return;
      clock.defer(() => listeners.notify(notices));
    },
    subscribe(listener) {
      const listeners = listenersOf.get(place) ?? new Listeners(log);
      listenersOf.set(place, listeners);
      const remove = listeners.add(listener);
      return () => {
        remove();
        if (listeners.size === 0 && listenersOf.get(place) === listeners) listenersOf.delete(place);
      };
    },
  };
}
