import { z } from "@hono/zod-openapi";
import { notStarted, type Probe } from "../telemetry/probe.ts";
import { Answered, endpoint } from "./endpoint.ts";
import { anyone } from "./roles.ts";

const probe = z
  .strictObject({
    ok: z.boolean(),
    checks: z
      .array(z.strictObject({ name: z.string(), ok: z.boolean(), detail: z.string() }))
      .optional()
      .openapi({ description: "Only for a caller with credentials." }),
  })
  .openapi("Probe");

/** For orchestrators and load balancers, which have no credentials: those learn whether, and not why. */
export const probeEndpoints = [
  endpoint({
    route: "GET /healthz",
    summary: "Whether this process is alive and its store answers; 503 if not",
    answer: probe,
    async run({ app, actor }) {
      return answerOf(await app.liveness(), actor);
    },
  }),
  endpoint({
    route: "GET /readyz",
    summary: "Whether this process does its work: claims jobs, or, without workers, has a store; 503 if not",
    answer: probe,
    async run({ app, actor }) {
      const ready = app.readiness();
      // An API by itself has no workers to wait for.
      const isIdle = ready.checks.some(({ detail }) => detail === notStarted);
      return answerOf(isIdle ? await app.liveness() : ready, actor);
    },
  }),
];

function answerOf({ ok, checks }: Probe, actor: string): Answered<z.input<typeof probe>> {
  const shown = actor === anyone.actor ? {} : { checks: checks.map((check) => ({ ...check })) };
  return new Answered({ ok, ...shown }, ok ? 200 : 503);
}
