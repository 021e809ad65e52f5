import { z } from "@hono/zod-openapi";
import { EscapementError } from "../errors.ts";
import { previewRule } from "../operations/rule-preview.ts";
import { actOf, asJson, endpoint, given } from "./endpoint.ts";
import {
  askedRule,
  backfilled,
  newRule,
  newSchedule,
  occurrences,
  rulePreview,
  schedule,
  scheduleOutcome,
  span,
  times,
} from "./fleet-schemas.ts";
import { receipt, why } from "./job-schemas.ts";
import { ProblemError } from "./problem.ts";
import { instantOrAgo, name, reason, whole } from "./words.ts";

const params = z.object({ key: name });
const longestSpanMs = 366 * 86_400_000;

export const scheduleEndpoints = [
  endpoint({
    route: "GET /schedules",
    summary: "All schedules",
    answer: z.strictObject({ schedules: z.array(schedule) }).openapi("Schedules"),
    async run({ operations }) {
      return asJson({ schedules: await operations.schedules() });
    },
  }),
  endpoint({
    route: "GET /schedules/{key}",
    summary: "One schedule",
    params,
    answer: schedule,
    async run({ operations, params: { key } }) {
      return asJson((await operations.schedule(key)) ?? unknownSchedule(key));
    },
  }),
  endpoint({
    route: "PUT /schedules/{key}",
    summary: "Creates or changes a schedule, for a job that the app defines",
    params,
    body: newSchedule,
    answer: scheduleOutcome,
    async run(call) {
      const { spec, job, input, reason: because, ...options } = call.body;
      const template = { spec: given(spec), job, input, options: given(options) };
      return {
        outcome: await call.operations.putSchedule(
          call.params.key,
          template,
          actOf(call, { reason: because }),
        ),
      };
    },
  }),
  endpoint({
    route: "PATCH /schedules/{key}",
    summary: "Changes when a schedule fires; its job stays",
    params,
    body: newRule,
    answer: scheduleOutcome,
    async run(call) {
      const { spec, reason: because } = call.body;
      const act = actOf(call, { reason: because });
      return { outcome: await call.operations.changeRule(call.params.key, given(spec), act) };
    },
  }),
  endpoint({
    route: "POST /schedules/preview",
    summary: "What a rule means and its next times; nothing is saved",
    body: askedRule,
    answer: rulePreview,
    async run({ body: { spec, count = 10 } }) {
      return asJson(previewRule(given(spec), count));
    },
  }),
  endpoint({
    route: "DELETE /schedules/{key}",
    summary: "Removes a schedule; its jobs and its ledger stay",
    params,
    query: z.strictObject({ reason: reason.optional() }),
    answer: z.strictObject({ removed: z.string() }).openapi("Removed"),
    async run(call) {
      const { key } = call.params;
      const isRemoved = await call.operations.removeSchedule(key, actOf(call, call.query));
      return isRemoved ? { removed: key } : unknownSchedule(key);
    },
  }),
  endpoint({
    route: "GET /schedules/{key}/next",
    summary: "The next times of a schedule",
    params,
    query: z.strictObject({ count: whole(1, 1_000, 5) }),
    answer: times,
    async run({ operations, params: { key }, query: { count } }) {
      return asJson({ times: await operations.nextTimes(key, count) });
    },
  }),
  endpoint({
    route: "GET /schedules/{key}/occurrences",
    summary: "The ledger of a schedule, by default of the last day",
    params,
    query: z.strictObject({
      from: instantOrAgo.optional(),
      to: instantOrAgo.optional(),
      limit: whole(1, 1_000, 100),
    }),
    answer: occurrences,
    async run({ operations, params: { key }, query: { from, to, limit } }) {
      checkSpan(from, to ?? new Date());
      const found = await operations.occurrences(key, { ...given({ from, to }), limit });
      return asJson({ occurrences: found });
    },
  }),
  endpoint({
    route: "POST /schedules/{key}/pause",
    summary: "Pauses a schedule",
    params,
    body: why,
    answer: schedule,
    async run(call) {
      return asJson(await call.operations.pauseSchedule(call.params.key, actOf(call, call.body)));
    },
  }),
  endpoint({
    route: "POST /schedules/{key}/resume",
    summary: "Resumes a schedule",
    params,
    body: why,
    answer: schedule,
    async run(call) {
      return asJson(await call.operations.resumeSchedule(call.params.key, actOf(call, call.body)));
    },
  }),
  endpoint({
    route: "POST /schedules/{key}/trigger",
    summary: "Runs its job once, now",
    params,
    body: why,
    answer: receipt,
    status: 201,
    async run(call) {
      const { id, outcome } = await call.operations.trigger(call.params.key, actOf(call, call.body));
      return { id, outcome };
    },
  }),
  endpoint({
    route: "POST /schedules/{key}/backfill",
    summary: "Plans what was skipped in a span of the past, or returns what would be planned",
    params,
    body: span,
    answer: backfilled,
    async run(call) {
      const { from, to, dryRun = false, reason: because } = call.body;
      const { key } = call.params;
      checkSpan(from, to);
      if (dryRun) return asJson({ dryRun, ...(await call.operations.previewBackfill(key, from, to)) });
      const count = await call.operations.backfill(key, from, to, actOf(call, { reason: because }));
      return { dryRun, count, times: [] };
    },
  }),
];

function unknownSchedule(key: string): never {
  throw new EscapementError("not-found", `there is no schedule ${JSON.stringify(key)}`);
}

function checkSpan(from: Date | undefined, to: Date): void {
  if (from === undefined || (from <= to && to.getTime() - from.getTime() <= longestSpanMs)) return;
  throw new ProblemError("invalid-request", "expected from to be before to, by at most 366 days");
}
