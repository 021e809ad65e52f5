// A middleware reports failed handlers to an error tracker such as Sentry; any process can follow a job.
import { createEscapement, defineJob, type Middleware, UnrecoverableError } from "../src/index.ts";

/** What is used of `@sentry/node`: pass `* as Sentry` itself. */
interface ErrorTracker {
  withIsolationScope<T>(run: (scope: { setTag(name: string, value: string): unknown }) => T): T;
  captureException(error: unknown): unknown;
}

// #region middleware
const reportTo = (sentry: ErrorTracker): Middleware =>
  function report({ job }, next) {
    return sentry.withIsolationScope(async (scope) => {
      scope.setTag("job", job.name);
      scope.setTag("attempt", `${job.attempt} of ${job.attempts}`);
      try {
        return await next();
      } catch (error) {
        // Only what is not retried is worth an alert.
        const isLast = job.attempt === job.attempts || job.delivery === "at-most-once";
        if (isLast || error instanceof UnrecoverableError) sentry.captureException(error);
        throw error;
      }
    });
  };
// #endregion

/** Stands in for Sentry, so that the example runs without it. */
const tags = new Map<string, string>();
const tracker: ErrorTracker = {
  withIsolationScope: (run) => run({ setTag: (name, value) => tags.set(name, value) }),
  captureException: (error) => console.log(`reported: ${(error as Error).message}, ${[...tags].join(" ")}`),
};

const charge = defineJob({
  name: "charge",
  retry: { attempts: 2, backoff: { delay: "10ms" } },
  run: async ({ progress }) => {
    progress({ step: "asking the bank" });
    throw new Error("the bank does not answer");
  },
});

const store = "sqlite:.escapement/sentry.db";
const log = { debug() {}, info() {}, warn() {}, error: console.error };
// #region use
// The tracker: import * as tracker from "@sentry/node"
const app = createEscapement({ store, jobs: [charge], log, middleware: [reportTo(tracker)] });
// #endregion
await app.start();
const receipt = await app.enqueue(charge);
// #region watch
for await (const update of app.watch(receipt)) {
  if (update.kind === "line")
    console.log(`${update.line.kind}: ${update.line.error?.message ?? update.line.text}`);
  if (update.kind === "ended") console.log(`ended: ${update.job.state}`);
}
// #endregion
await app.stop();
