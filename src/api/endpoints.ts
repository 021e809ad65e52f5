import { bulkEndpoints } from "./bulk-endpoints.ts";
import type { AnyEndpoint } from "./endpoint.ts";
import { eventEndpoints } from "./event-endpoints.ts";
import { fleetEndpoints } from "./fleet-endpoints.ts";
import { jobEndpoints } from "./job-endpoints.ts";
import { probeEndpoints } from "./probe-endpoints.ts";
import { queueEndpoints } from "./queue-endpoints.ts";
import { scheduleEndpoints } from "./schedule-endpoints.ts";
import { verifyEndpoints } from "./verify-endpoints.ts";

/** Every route but the description of them all, which is made from this list. */
export const endpoints: readonly AnyEndpoint[] = [
  ...fleetEndpoints,
  ...verifyEndpoints,
  ...jobEndpoints,
  ...bulkEndpoints,
  ...queueEndpoints,
  ...scheduleEndpoints,
  ...eventEndpoints,
  ...probeEndpoints,
];
