import { createHash } from "node:crypto";
import { z } from "@hono/zod-openapi";
import { digestLength, digestOfEnd, EndsSince, overlapMs } from "../client/ends-since.ts";
import { EscapementError } from "../errors.ts";
import { toSummary } from "../operations/find-jobs.ts";
import { isTerminal } from "../state.ts";
import type { ScanFilter } from "../store/questions.ts";
import { type Call, endpoint } from "./endpoint.ts";
import { queueView } from "./fleet-schemas.ts";
import { checkMaySearch } from "./job-endpoints.ts";
import { jobProgress, jobSummary } from "./job-schemas.ts";
import type { StreamEvent } from "./streams.ts";
import { filterQuery, id, readFilter } from "./words.ts";

const { name, queue, tag, delivery, schedule, error } = filterQuery;
const ended = ["succeeded", "dead", "lost", "cancelled"] as const;
const headers = z.object({ "Last-Event-ID": z.string().max(300).optional() });

type AnyCall = Call<unknown, unknown, unknown>;
type Events = readonly NonNullable<StreamEvent>[];

export const eventEndpoints = [
  endpoint({
    route: "GET /events/ended",
    summary:
      "Jobs as they end (event: ended). After a reconnect an event may come again if many jobs ended just before: a job's end is its id and finishedAt",
    headers,
    query: z.strictObject({ state: filterQuery.state, name, queue, tag, delivery, schedule, error }),
    answer: jobSummary,
    isStream: true,
    async run(call) {
      checkMaySearch(call, call.query);
      const { state = [...ended], ...words } = call.query;
      const { fingerprint: _, ...filter } = readFilter({ ...words, state: state.filter(isTerminal) });
      return call.streams.open(call.signal, endedJobs(call, filter, await beginningOf(call)));
    },
  }),
  endpoint({
    route: "GET /events/queues",
    summary: "The figures of all queues whenever they change (event: queues)",
    headers,
    answer: z.strictObject({ queues: z.array(queueView) }).openapi("Queues"),
    isStream: true,
    async run(call) {
      const { operations, streams } = call;
      const fresh = new Changes("queues", call.header("last-event-id"));
      return streams.open(call.signal, async () =>
        fresh.of({ queues: await streams.ask("queues", () => operations.queues()) }),
      );
    },
  }),
  endpoint({
    route: "GET /jobs/{id}/events",
    summary: "The progress of one job (event: job), until it has ended; 204 when there will be no more",
    headers,
    params: z.object({ id }),
    answer: jobProgress,
    isStream: true,
    async run(call) {
      const jobId = call.params.id;
      const fresh = new Changes("job", call.header("last-event-id"));
      const first = await progressOf(call, jobId);
      // A browser reconnects after the end, unless the answer says that there is nothing.
      if (isTerminal(first.state) && fresh.of(first).length === 0) return new Response(null, { status: 204 });
      const again = new Changes("job", call.header("last-event-id"));
      let hasEnded = false;
      return call.streams.open(call.signal, async () => {
        if (hasEnded) return "end";
        const progress = await progressOf(call, jobId);
        hasEnded = isTerminal(progress.state);
        return again.of(progress);
      });
    },
  }),
];

async function progressOf({ app, streams }: AnyCall, jobId: string) {
  return streams.ask(`job ${jobId}`, async () => {
    const job = await app.get(jobId);
    if (job === null) throw new EscapementError("not-found", `there is no job ${JSON.stringify(jobId)}`);
    const { state, attempt, attempts, progress, reason, error: failure, finishedAt, cancelRequested } = job;
    const trail = await app.trail(job.id);
    return {
      id: job.id,
      state,
      attempt,
      attempts,
      progress,
      reason,
      error: failure,
      finishedAt,
      cancelRequested,
      trail,
    };
  });
}

/** The current value, sent when it differs from what was sent last: the id of an event is a digest of it. */
class Changes {
  readonly #event: string;
  #last: string | null;

  constructor(event: string, last: string | null) {
    this.#event = event;
    this.#last = last;
  }

  of(value: object): Events {
    // How long something has been due changes with time.
    const text = JSON.stringify(value, (key, one: unknown) => (key === "oldestDueMs" ? undefined : one));
    const digest = createHash("sha256").update(text).digest("hex").slice(0, 24);
    if (digest === this.#last) return [];
    this.#last = digest;
    return [{ event: this.#event, id: digest, data: value }];
  }
}

/** How far back a stream may resume. */
const longestGapMs = 3_600_000;
const mostAtOnce = 1_000;
/** How many of the latest ends the id of an event names, so that they do not come again after a reconnect. */
const mostNamed = 24;

/** Where a stream of ends begins. */
interface Beginning {
  /** What ended before is not reported. */
  readonly since: Date;
  /** Digests of what a client has seen already. */
  readonly told: readonly string[];
}

/** Looks for jobs that have ended, however long ago they were enqueued. */
function endedJobs({ app, streams }: AnyCall, filter: ScanFilter, { since, told }: Beginning) {
  const ends = new EndsSince({
    // Streams that ask the same question share its answer.
    scan: (params) => streams.ask(`ended ${JSON.stringify(params)}`, () => app.client.scan(params)),
    filter,
    since,
    told,
    elapsedMs: () => performance.now(),
    most: mostAtOnce,
  });
  let named = told;
  return async (): Promise<Events> =>
    ends.fresh(await ends.find()).map((sketch) => {
      named = [...named, digestOfEnd(sketch)].slice(-mostNamed);
      const id = `${sketch.finishedAt?.getTime() ?? 0}.${since.getTime()}.${named.join("")}`;
      return { event: "ended", id, data: toSummary(sketch) };
    });
}

/** Where a client left off, if that is not too long ago; else now. */
async function beginningOf({ app, header }: AnyCall): Promise<Beginning> {
  const { now } = await app.health();
  const last = /^(\d{1,15})\.(\d{1,15})\.([\w-]{0,192})$/.exec(header("last-event-id") ?? "");
  if (last === null) return { since: now, told: [] };
  const [, ended = "", began = "", digests = ""] = last;
  const oldest = now.getTime() - longestGapMs;
  const since = new Date(Math.max(Number(ended) - overlapMs, Number(began), oldest));
  const told = digests.match(new RegExp(`.{${digestLength}}`, "g")) ?? [];
  return { since, told };
}
