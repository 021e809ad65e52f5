import { z } from "@hono/zod-openapi";
import { recordError } from "../errors.ts";
import { deliveries } from "../job.ts";
import { readVerifyReport, type VerifyReport } from "../verify-report.ts";
import { asJson, endpoint } from "./endpoint.ts";
import { count, instant, orNull } from "./words.ts";

const report = z
  .object({
    at: instant,
    valid: z.boolean(),
    command: z.string().openapi({ description: "Options that reproduce the run." }),
    engine: z.string(),
    durationMs: z.number(),
    guarantees: z.array(
      z
        .object({
          delivery: z.enum(deliveries),
          jobs: count,
          dispatches: count,
          reruns: count,
          succeeded: count,
          givenUp: count,
          effects: count,
          broken: count,
        })
        .openapi("VerifiedGuarantee"),
    ),
    faults: z.record(z.string(), count),
    staleRefused: count,
    recovery: z.object({ count, p50Ms: z.number(), p99Ms: z.number() }),
    violationCount: count,
    violations: z.array(z.object({ kind: z.string(), subject: z.string(), detail: z.string() })),
  })
  .openapi("VerifyReport");

const last = z
  .strictObject({
    report: orNull(report),
    problem: z.string().nullable().openapi({ description: "Why it cannot be read." }),
  })
  .openapi("LastVerifyReport");

export const verifyEndpoints = [
  endpoint({
    route: "GET /verify",
    summary: "The last report of escapement verify, where this server finds one",
    answer: last,
    async run({ verifyReport }) {
      return asJson(lastReport(verifyReport));
    },
  }),
];

function lastReport(path: string): { report: VerifyReport | null; problem: string | null } {
  try {
    const found = readVerifyReport(path);
    if (found === undefined) return { report: null, problem: null };
    const read = report.safeParse(found);
    if (read.success) return { report: read.data, problem: null };
    return { report: null, problem: "it is not a report of escapement verify; run it again" };
  } catch (error) {
    return { report: null, problem: recordError(error).message };
  }
}
