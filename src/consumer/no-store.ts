import { noJobs } from "../enqueue.ts";

/** A consumer has brokers and an inbox, but no store. */
export const noStore = noJobs(
  "a consumer has no store to enqueue to; create an app in its process and use that, with an id made of the job's own",
);
