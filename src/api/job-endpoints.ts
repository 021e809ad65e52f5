import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { z } from "@hono/zod-openapi";
import { EscapementError } from "../errors.ts";
import { parseExact } from "../exact-json.ts";
import { isTerminal } from "../state.ts";
import type { Call } from "./endpoint.ts";
import { Answered, actOf, asJson, endpoint, given } from "./endpoint.ts";
import {
  changed,
  children,
  jobChanges,
  jobResult,
  jobStory,
  jobsPage,
  newJob,
  receipt,
  updateResult,
  why,
} from "./job-schemas.ts";
import { ProblemError } from "./problem.ts";
import { filterQuery, id, readFilter, reason, whole } from "./words.ts";

const params = z.object({ id });
const longestKey = 255;

export const jobEndpoints = [
  endpoint({
    route: "GET /jobs",
    summary: "Jobs that match, a page at a time",
    query: z.strictObject({
      ...filterQuery,
      order: z.enum(["newest", "oldest"]).optional(),
      limit: whole(1, 1_000, 50),
      lookAt: whole(1, 100_000, 10_000),
      cursor: z.string().max(2_000).optional(),
    }),
    answer: jobsPage,
    async run(call) {
      const { order, limit, lookAt, cursor, ...words } = call.query;
      checkMaySearch(call, words);
      return asJson(
        await call.operations.jobs(readFilter(words), {
          limit,
          lookAt,
          ...given({ order }),
          cursor: cursor ?? null,
        }),
      );
    },
  }),
  endpoint({
    route: "POST /jobs",
    summary: "Enqueues a job that the app defines",
    headers: z.object({ "Idempotency-Key": z.string().max(longestKey).optional() }),
    body: newJob,
    answer: receipt,
    status: 201,
    async run(call) {
      const { name, input, reason: because, id: ownId, ...rest } = call.body;
      const key = call.header("idempotency-key");
      const jobId = key === null ? ownId : idOfRequest(call.actor, key, ownId);
      const options = given({ ...rest, id: jobId });
      const made = await call.operations.enqueue(name, input, options, actOf(call, { reason: because }));
      if (made.outcome === "existing" && key !== null) await checkSame(call, made.id, name, input);
      const { id: madeId, outcome } = made;
      return new Answered({ id: madeId, outcome }, outcome === "added" ? 201 : 200);
    },
  }),
  endpoint({
    route: "GET /jobs/{id}",
    summary: "One job, its trail, and why it has not ended",
    params,
    answer: jobStory,
    async run({ operations, params: { id: asked } }) {
      return asJson((await operations.job(asked)) ?? unknownJob(asked));
    },
  }),
  endpoint({
    route: "GET /jobs/{id}/result",
    summary: "A job's outcome; optionally waits for it",
    params,
    query: z.strictObject({ waitMs: whole(0, 30_000, 0) }),
    answer: jobResult,
    async run({ app, params: { id: asked }, query: { waitMs } }) {
      // Whatever it ended with is read from the job below.
      if (waitMs > 0) await app.result(asked, { timeout: waitMs }).catch(ignoreEnds);
      const job = (await app.client.get(asked, parseExact)) ?? unknownJob(asked);
      const { state, result, error, reason: because } = job;
      return asJson({ state, hasEnded: isTerminal(state), result, error, reason: because });
    },
  }),
  endpoint({
    route: "GET /jobs/{id}/children",
    summary: "Jobs that wait for this one, as far as a bounded search of blocked jobs shows",
    params,
    answer: children,
    async run({ operations, params: { id: asked } }) {
      return asJson(await operations.children(asked));
    },
  }),
  endpoint({
    route: "PATCH /jobs/{id}",
    summary: "Changes a job that has not started",
    params,
    body: jobChanges,
    answer: updateResult,
    async run(call) {
      const { reason: because, ...changes } = call.body;
      const result = await call.operations.edit(
        call.params.id,
        given(changes),
        actOf(call, { reason: because }),
      );
      if (result.outcome === "unknown") unknownJob(call.params.id);
      return result;
    },
  }),
  endpoint({
    route: "DELETE /jobs/{id}",
    summary: "Forgets a job that has ended",
    params,
    query: z.strictObject({ reason: reason.optional() }),
    answer: changed,
    async run(call) {
      const asked = call.params.id;
      return one(asked, await call.operations.delete([asked], actOf(call, call.query)));
    },
  }),
  endpoint({
    route: "POST /jobs/{id}/cancel",
    summary: "Cancels a job; an active one is asked to stop",
    params,
    body: why,
    answer: changed,
    async run(call) {
      const asked = call.params.id;
      return one(asked, await call.operations.cancel([asked], actOf(call, call.body)));
    },
  }),
  endpoint({
    route: "POST /jobs/{id}/redrive",
    summary: "Sends a dead or lost job back to waiting",
    params,
    body: why,
    answer: changed,
    async run(call) {
      const asked = call.params.id;
      return one(asked, await call.operations.redrive([asked], actOf(call, call.body)));
    },
  }),
  endpoint({
    route: "POST /jobs/{id}/run-now",
    summary: "Makes a job due now that waits for its time",
    params,
    body: why,
    answer: updateResult,
    async run(call) {
      const result = await call.operations.runNow(call.params.id, actOf(call, call.body));
      if (result.outcome === "unknown") unknownJob(call.params.id);
      return result;
    },
  }),
];

/** Where answers are masked, a search would reveal what is behind the mask, a letter at a time. */
export function checkMaySearch(
  { isRedacted, role }: Pick<Call<unknown, unknown, unknown>, "isRedacted" | "role">,
  words: { readonly error?: string | undefined; readonly text?: string | undefined },
): void {
  if (!isRedacted || role !== "read" || (words.error === undefined && words.text === undefined)) return;
  throw new ProblemError(
    "forbidden",
    "this server's responses are masked, so text and error need the role operate",
  );
}

function unknownJob(asked: string): never {
  throw new EscapementError(
    "not-found",
    `there is no job ${JSON.stringify(asked)}; it was never enqueued, or is no longer kept`,
  );
}

type Outcome = z.infer<typeof changed>["outcome"];

/** The outcome of one job from the count of outcomes. */
function one(
  asked: string,
  tally: Readonly<Partial<Record<Outcome | "unknown", number>>>,
): { readonly outcome: Outcome } {
  const [outcome = "unknown"] = Object.keys(tally) as (Outcome | "unknown")[];
  return outcome === "unknown" ? unknownJob(asked) : { outcome };
}

/** A key is good for one actor: another's must not be given a job that is not theirs. */
function idOfRequest(actor: string, key: string, ownId: string | undefined): string {
  if (ownId !== undefined)
    throw new ProblemError("invalid-request", "an id makes a job idempotent; leave out Idempotency-Key");
  if (key === "" || key.length > longestKey)
    throw new ProblemError(
      "invalid-request",
      `expected Idempotency-Key to have 1 to ${longestKey} characters, got ${key.length}`,
    );
  return `request-${createHash("sha256").update(`${actor}\n${key}`).digest("hex")}`;
}

async function checkSame(
  { app }: Pick<Call<unknown, unknown, unknown>, "app">,
  jobId: string,
  name: string,
  input: unknown,
): Promise<void> {
  const job = await app.client.get(jobId, parseExact);
  if (job === null || (job.name === name && isDeepStrictEqual(job.input, input ?? null))) return;
  throw new ProblemError(
    "idempotency-mismatch",
    "this Idempotency-Key was used for another job; use a new one for a new request",
  );
}

function ignoreEnds(error: unknown): void {
  const isEnd =
    error instanceof EscapementError &&
    ["job-failed", "result-not-kept", "result-timeout"].includes(error.code);
  if (!isEnd) throw error;
}
