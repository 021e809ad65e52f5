import type { Fire, FireResult, NewOccurrence } from "../store/schedules.ts";
import type { Leg, Telemetry } from "../telemetry/telemetry.ts";
import { withTrace } from "../telemetry/trace.ts";

/** Fires whose jobs carry a context, and the callback that gets the store's answer. */
export interface TracedFires {
  readonly fires: readonly Fire[];
  fired(results: readonly FireResult[]): void;
}

/** All nodes plan alike, and one wins: only what this one added is reported as planned. */
export function traceFires(fires: readonly Fire[], telemetry: Telemetry | null): TracedFires {
  if (telemetry === null) return { fires, fired: () => {} };
  const legs: (Leg<boolean> | null)[][] = [];
  const traced = fires.map((fire) => {
    const ofFire: (Leg<boolean> | null)[] = [];
    legs.push(ofFire);
    const occurrences = fire.occurrences.map((occurrence): NewOccurrence => {
      const { job, fireAt } = occurrence;
      const leg = job === null ? null : telemetry.planning({ schedule: fire.key, fireAt, job });
      ofFire.push(leg);
      return job === null || leg === null
        ? occurrence
        : { ...occurrence, job: { ...job, tags: withTrace(job.tags, leg.trace) } };
    });
    return { ...fire, occurrences };
  });
  return {
    fires: traced,
    fired(results) {
      for (const [index, ofFire] of legs.entries()) {
        const added = results[index]?.occurrences ?? [];
        for (const [place, leg] of ofFire.entries()) leg?.end(added[place] === "added");
      }
    },
  };
}
