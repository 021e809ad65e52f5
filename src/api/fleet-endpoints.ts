import { z } from "@hono/zod-openapi";
import { maxHistoryPoints } from "../client/history.ts";
import { historySteps, lateBoundsMs } from "../history.ts";
import { withoutSecrets } from "../message/transport.ts";
import { version } from "../runtime/version.ts";
import { asJson, endpoint, given } from "./endpoint.ts";
import { auditPage, definitions, health, history, me, nodes, overview, partitions } from "./fleet-schemas.ts";
import { countRow } from "./job-schemas.ts";
import { filterQuery, instantOrAgo, manyNames, manyTargets, name, readFilter, whole } from "./words.ts";

const { state, name: names, queue, tag, delivery, schedule } = filterQuery;

export const fleetEndpoints = [
  endpoint({
    route: "GET /me",
    summary: "The caller and their role",
    answer: me,
    async run({ app, actor, role, notice }) {
      return { actor, role, namespace: app.settings.namespace, version, notice };
    },
  }),
  endpoint({
    route: "GET /overview",
    summary: "Overview",
    answer: overview,
    async run({ operations }) {
      return asJson(await operations.overview());
    },
  }),
  endpoint({
    route: "GET /counts",
    summary: "Counts by state, queue and name",
    query: z.strictObject({
      by: z
        .string()
        .regex(
          /^(state|queue|name)(,(state|queue|name)){0,2}$/,
          "expected state, queue and name, with commas",
        )
        .optional(),
      ...{ state, name: names, queue, tag, delivery, schedule },
    }),
    answer: z.strictObject({ counts: z.array(countRow) }).openapi("Counts"),
    async run({ operations, query: { by = "state", ...words } }) {
      const asked = new Set(by.split(","));
      const groups = (["state", "queue", "name"] as const).filter((one) => asked.has(one));
      return asJson({ counts: await operations.counts(groups, readFilter(words)) });
    },
  }),
  endpoint({
    route: "GET /definitions",
    summary: "The jobs that this process defines, and their guarantees",
    answer: definitions,
    async run({ app }) {
      const known = app.definitions.map(
        ({ name: ofJob, queue: ofName, delivery: declared, attempts, route }) => ({
          name: ofJob,
          queue: ofName,
          delivery: declared,
          attempts,
          transport: route?.transport.kind ?? null,
          destination: route === null ? null : withoutSecrets(route.destination),
        }),
      );
      return asJson({ definitions: known });
    },
  }),
  endpoint({
    route: "GET /history",
    summary: "What has ended, how late it started and how long it took, by minute or by hour",
    query: z.strictObject({
      step: z.enum(historySteps).optional(),
      since: instantOrAgo.optional(),
      until: instantOrAgo.optional(),
      queue: name.optional(),
      name: name.optional(),
      by: z.enum(["queue", "name"]).optional(),
      limit: whole(1, maxHistoryPoints, maxHistoryPoints),
    }),
    answer: history,
    async run({ operations, query }) {
      return asJson({ ...(await operations.history(given(query))), lateBoundsMs: [...lateBoundsMs] });
    },
  }),
  endpoint({
    route: "GET /health",
    summary: "The health of the store",
    answer: health,
    async run({ app }) {
      const { now, engine, schemaVersion, problems } = await app.health();
      return asJson({ now, engine, schemaVersion, problems, version });
    },
  }),
  endpoint({
    route: "GET /nodes",
    summary: "Living nodes, and what they run",
    answer: nodes,
    async run({ operations }) {
      return asJson({ nodes: await operations.nodes() });
    },
  }),
  endpoint({
    route: "GET /partitions",
    summary: "How relays share the partitions, and which holds what",
    answer: partitions,
    async run({ operations }) {
      return asJson(await operations.partitions());
    },
  }),
  endpoint({
    route: "GET /audit",
    summary: "Who did what, the newest first",
    query: z.strictObject({
      actor: manyNames,
      action: manyNames,
      target: manyTargets,
      since: instantOrAgo.optional(),
      until: instantOrAgo.optional(),
      limit: whole(1, 1_000, 50),
      cursor: z.string().max(2_000).optional(),
    }),
    answer: auditPage,
    async run({ operations, query }) {
      const { actor: actors, action: actions, target: targets, since: after, until: before } = query;
      const filter = given({ actors, actions, targets, after, before });
      return asJson(await operations.audit(filter, { limit: query.limit, cursor: query.cursor ?? null }));
    },
  }),
];
