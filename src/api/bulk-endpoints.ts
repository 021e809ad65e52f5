import { z } from "@hono/zod-openapi";
import type { Act } from "../operations/act.ts";
import type { BulkTask } from "../operations/bulk-task.ts";
import { defaultFailures } from "../operations/failures.ts";
import type { JobsFilter } from "../operations/find-jobs.ts";
import type { BulkOptions, Operations } from "../operations/operations.ts";
import { type AnyEndpoint, actOf, asJson, endpoint } from "./endpoint.ts";
import { checkMaySearch } from "./job-endpoints.ts";
import { bulk, bulkFailures, bulkPriority, failures, task } from "./job-schemas.ts";
import type { TaskView } from "./tasks.ts";
import { filterQuery, name, readFilter, whole } from "./words.ts";

type All = (operations: Operations, filter: JobsFilter, act: Act, options: BulkOptions) => BulkTask;

const taskParams = z.object({ id: name });

export const bulkEndpoints = [
  all("POST /jobs/cancel", "cancel", (operations, ...rest) => operations.cancelAll(...rest)),
  all("POST /jobs/redrive", "redrive", (operations, ...rest) => operations.redriveAll(...rest)),
  all("POST /jobs/delete", "delete", (operations, ...rest) => operations.deleteAll(...rest)),
  all("POST /jobs/run-now", "run-now", (operations, ...rest) => operations.runNowAll(...rest)),
  endpoint({
    route: "POST /jobs/priority",
    summary: "Starts a task that will set the priority of all jobs that match and have not started",
    body: bulkPriority,
    answer: task,
    status: 202,
    async run(call) {
      const { filter, priority, dryRun = false, reason } = call.body;
      const read = readFilter(filter);
      return asJson(
        call.tasks.start({ action: "priority", dryRun, actor: call.actor }, () =>
          call.operations.prioritizeAll(read, priority, actOf(call, { reason }), { dryRun }),
        ),
      );
    },
  }),
  endpoint({
    route: "GET /tasks",
    summary: "The tasks of this server, the latest first",
    answer: z.strictObject({ tasks: z.array(task) }).openapi("Tasks"),
    async run({ tasks }) {
      return asJson({ tasks: tasks.list() });
    },
  }),
  endpoint({
    route: "GET /tasks/{id}",
    summary: "Progress of a task",
    params: taskParams,
    answer: task,
    async run({ tasks, params }) {
      return asJson(tasks.get(params.id));
    },
  }),
  endpoint({
    route: "POST /tasks/{id}/stop",
    summary: "Stops a task after the current page",
    params: taskParams,
    answer: task,
    async run({ tasks, params }) {
      return asJson(tasks.stop(params.id));
    },
  }),
  endpoint({
    route: "GET /failures",
    summary: "Dead and lost jobs, grouped by cause",
    query: z.strictObject({ ...filterQuery, lookAt: whole(1, 100_000, defaultFailures) }),
    answer: failures,
    async run(call) {
      const { lookAt, ...words } = call.query;
      checkMaySearch(call, words);
      const { fingerprint, ...filter } = readFilter(words);
      const found = await call.operations.failures(filter, lookAt);
      if (fingerprint === undefined) return asJson(found);
      const groups = found.groups.filter((group) => group.fingerprint === fingerprint);
      return asJson({ ...found, groups, count: groups.reduce((sum, { count }) => sum + count, 0) });
    },
  }),
  endpoint({
    route: "POST /failures/{fingerprint}/redrive",
    summary: "Redrives all jobs that failed for this cause, as a task",
    params: z.object({ fingerprint: name }),
    body: bulkFailures,
    answer: task,
    status: 202,
    async run(call) {
      const { name: jobName, state, dryRun = false, reason } = call.body;
      const filter: JobsFilter = {
        states: state === undefined ? ["dead", "lost"] : [state],
        fingerprint: call.params.fingerprint,
        ...(jobName === undefined ? {} : { names: [jobName] }),
      };
      const about = { action: "redrive", dryRun, actor: call.actor } as const;
      return asJson(
        call.tasks.start(about, () =>
          call.operations.redriveAll(filter, actOf(call, { reason }), { dryRun }),
        ),
      );
    },
  }),
];

function all(
  route: "POST /jobs/cancel" | "POST /jobs/redrive" | "POST /jobs/delete" | "POST /jobs/run-now",
  action: TaskView["action"],
  begin: All,
): AnyEndpoint {
  return endpoint({
    route,
    summary: summaryOf(action),
    body: bulk,
    answer: task,
    status: 202,
    async run(call) {
      const { filter, dryRun = false, reason } = call.body;
      const read = readFilter(filter);
      return asJson(
        call.tasks.start({ action, dryRun, actor: call.actor }, () =>
          begin(call.operations, read, actOf(call, { reason }), { dryRun }),
        ),
      );
    },
  });
}

function summaryOf(action: TaskView["action"]): string {
  return action === "run-now"
    ? "Starts a task that will make all jobs due that match and wait for their time, oldest first"
    : `Starts a task that will ${action} all jobs that match, oldest first`;
}
