import { type AnyDefinition, defineJob, type Handler, type JobDefinition } from "../definition.ts";
import { type Delivery, deliveries } from "../job.ts";
import type { Route } from "../message/transport.ts";

/** What a job of the workload does. */
export interface Script {
  /** How long it takes. */
  readonly ms: number;
  /** How many attempts fail. */
  readonly failures: number;
}

/** The token of the attempt that gave the result. */
export interface ScriptResult {
  readonly token: number;
}

/** Crashes and retries are as many as the faults: none may end a job. */
const without = 1_000;

/** The jobs of the workload, one for each guarantee; without a handler, to enqueue or to publish them. */
export function defineJobs(
  retryMs: number,
  run?: Handler<Script, ScriptResult>,
  route?: Route,
): Readonly<Record<Delivery, JobDefinition<Script, ScriptResult>>> {
  const define = (delivery: Delivery): JobDefinition<Script, ScriptResult> =>
    defineJob<Script, ScriptResult>({
      name: `verify-${delivery}`,
      delivery,
      maxCrashes: without,
      retry: { attempts: without, backoff: { type: "fixed", delay: retryMs, jitter: 0 } },
      ...(run === undefined ? {} : { run }),
      ...(route === undefined ? {} : { route }),
    });
  return {
    "at-most-once": define("at-most-once"),
    "at-least-once": define("at-least-once"),
    "effectively-once": define("effectively-once"),
  };
}

export function asList(
  jobs: Readonly<Record<Delivery, JobDefinition<Script, ScriptResult>>>,
): AnyDefinition[] {
  return deliveries.map((delivery) => jobs[delivery]);
}
