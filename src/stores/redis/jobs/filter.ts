import type { JobFilter } from "../../../store/questions.ts";
import { deliveryNumber, stateNumber } from "../rows.ts";

/** A filter as lua/shared/search.lua reads it. */
export function filterJson(filter: JobFilter): object {
  const instants = {
    enqueuedAfter: filter.enqueuedAfter?.getTime(),
    enqueuedBefore: filter.enqueuedBefore?.getTime(),
    runAfter: filter.runAfter?.getTime(),
    runBefore: filter.runBefore?.getTime(),
  };
  return {
    ids: filter.ids,
    states: filter.states?.map(stateNumber),
    names: filter.names,
    queues: filter.queues,
    deliveries: filter.deliveries?.map(deliveryNumber),
    tags: filter.tags,
    schedule: filter.schedule,
    ...instants,
  };
}
