import { createHash } from "node:crypto";
import { z } from "@hono/zod-openapi";
import { EscapementError } from "../errors.ts";
import type { JobSummary, JobsFilter } from "../operations/find-jobs.ts";
import { isTerminal } from "../state.ts";
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
      "Jobs as they end (event: ended). After a reconnect an event may come again: a job's end is its id and finishedAt",
    headers,
    query: z.strictObject({ state: filterQuery.state, name, queue, tag, delivery, schedule, error }),
    answer: jobSummary,
    isStream: true,
    async run(call) {
      checkMaySearch(call, call.query);
      const { state = [...ended], ...words } = call.query;
      const filter = readFilter({ ...words, state: state.filter(isTerminal) });
      const { now } = await call.app.health();
      const watch = new EndedJobs(call, filter, resumeAt(call), now);
      return call.streams.open(call.signal, () => watch.look());
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
    summary: "The progress of one job (event: job), until it has ended; 204 once there is no more to come",
    headers,
    params: z.object({ id }),
    answer: jobProgress,
    isStream: true,
    async run(call) {
      const jobId = call.params.id;
      const fresh = new Changes("job", call.header("last-event-id"));
      const first = await progressOf(call, jobId);
      // A browser comes again after the end, unless it is told that there is nothing.
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

/** Something as it stands, sent when it differs from what was sent last: the id of an event is a digest of it. */
class Changes {
  readonly #event: string;
  #last: string | null;

  constructor(event: string, last: string | null) {
    this.#event = event;
    this.#last = last;
  }

  of(value: object): Events {
    // How long something has been due changes by itself.
    const text = JSON.stringify(value, (key, one: unknown) => (key === "oldestDueMs" ? undefined : one));
    const digest = createHash("sha256").update(text).digest("hex").slice(0, 24);
    if (digest === this.#last) return [];
    this.#last = digest;
    return [{ event: this.#event, id: digest, data: value }];
  }
}

/** Ends may be written a little later than the time they carry. */
const overlapMs = 10_000;
/** How far back a stream may resume. */
const longestGapMs = 3_600_000;
/** The newest ended jobs, by their enqueueing, among which ends are looked for. */
const lookAt = 2_000;
const mostAtOnce = 1_000;

class EndedJobs {
  readonly #call: AnyCall;
  readonly #filter: JobsFilter;
  readonly #startedAt: number;
  readonly #began = performance.now();
  readonly #sent = new Map<string, number>();
  /** What ended before is no news: before the stream began, or well before where it resumes. */
  readonly #floor: number;
  #from: number;

  constructor(call: AnyCall, filter: JobsFilter, resumed: Date | null, now: Date) {
    this.#call = call;
    this.#filter = filter;
    this.#from = (resumed ?? now).getTime();
    this.#floor = resumed === null ? this.#from : this.#from - overlapMs;
    this.#startedAt = now.getTime();
  }

  async look(): Promise<Events> {
    const { operations, streams } = this.#call;
    // Whole steps, so that streams with the same filter ask the same question.
    const after = Math.floor((this.#from - overlapMs) / overlapMs) * overlapMs;
    const filter = { ...this.#filter, endedAfter: new Date(after) };
    const asOf = this.#startedAt + performance.now() - this.#began;
    const { jobs } = await streams.ask(`ended ${JSON.stringify(filter)}`, () =>
      operations.jobs(filter, { limit: mostAtOnce, lookAt }),
    );
    const fresh = jobs.filter((job) => this.#isNew(job)).sort((a, b) => endOf(a) - endOf(b));
    for (const job of fresh) this.#sent.set(keyOf(job), endOf(job));
    this.#from = Math.max(this.#from, asOf);
    for (const [key, at] of this.#sent) if (at < after) this.#sent.delete(key);
    const events = fresh.map((job) => ({ event: "ended", id: String(endOf(job)), data: job }));
    if (jobs.length < mostAtOnce || fresh.length === 0) return events;
    const since = new Date(after);
    return [{ event: "gap", id: String(after), data: { since, atMost: mostAtOnce } }, ...events];
  }

  #isNew(job: JobSummary): boolean {
    return endOf(job) >= this.#floor && !this.#sent.has(keyOf(job));
  }
}

function endOf({ finishedAt }: JobSummary): number {
  return finishedAt?.getTime() ?? 0;
}

function keyOf(job: JobSummary): string {
  return `${endOf(job)} ${job.id}`;
}

/** Where a client left off, if that is not too long ago. */
function resumeAt({ header }: AnyCall): Date | null {
  const last = header("last-event-id");
  if (last === null || !/^\d{1,15}$/.test(last)) return null;
  return new Date(Math.max(Number(last), Date.now() - longestGapMs));
}
