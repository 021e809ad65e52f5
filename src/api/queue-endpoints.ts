import { z } from "@hono/zod-openapi";
import { findOldestDue } from "../operations/oldest-due.ts";
import { actOf, asJson, endpoint, given } from "./endpoint.ts";
import { limits, queueConfig, queueView } from "./fleet-schemas.ts";
import { why } from "./job-schemas.ts";
import { name } from "./words.ts";

const params = z.object({ queue: name });

export const queueEndpoints = [
  endpoint({
    route: "GET /queues",
    summary: "Queues that have or had jobs, were configured, or that a definition or a node names",
    answer: z.strictObject({ queues: z.array(queueView) }).openapi("Queues"),
    async run({ operations }) {
      return asJson({ queues: await operations.queues() });
    },
  }),
  endpoint({
    route: "GET /queues/{queue}/oldest",
    summary: "The job that has been due the longest, as far as a bounded search shows",
    params,
    answer: z.strictObject({ id: z.string().nullable() }).openapi("OldestDue"),
    async run({ app, params: { queue } }) {
      return { id: await findOldestDue(app.client, queue) };
    },
  }),
  endpoint({
    route: "PATCH /queues/{queue}",
    summary: "Limits a queue across all nodes; null removes a limit",
    params,
    body: limits,
    answer: queueConfig,
    async run(call) {
      const { reason, ...changes } = call.body;
      return asJson(
        await call.operations.limitQueue(call.params.queue, given(changes), actOf(call, { reason })),
      );
    },
  }),
  endpoint({
    route: "POST /queues/{queue}/pause",
    summary: "Pauses a queue; running jobs finish",
    params,
    body: why,
    answer: queueConfig,
    async run(call) {
      return asJson(await call.operations.pauseQueue(call.params.queue, actOf(call, call.body)));
    },
  }),
  endpoint({
    route: "POST /queues/{queue}/resume",
    summary: "Resumes a queue",
    params,
    body: why,
    answer: queueConfig,
    async run(call) {
      return asJson(await call.operations.resumeQueue(call.params.queue, actOf(call, call.body)));
    },
  }),
];
