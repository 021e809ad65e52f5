import type { Clock } from "../clock.ts";
import type { Events } from "../events.ts";
import { observeApp, type RelayFigures } from "../observe/metrics.ts";
import { Observation } from "../observe/observation.ts";

/** Counts what happens in an app. */
export function observe(events: Events, clock: Clock, relay: () => RelayFigures | null): Observation {
  return new Observation(
    observeApp({ on: (name, counter) => events.count(name, counter), now: () => clock.now(), relay }),
  );
}
