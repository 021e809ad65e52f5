import type { AppEventName, AppEvents } from "../events.ts";
import type { JobFacts } from "../job.ts";
import type { QueueDepth } from "../store/questions.ts";
import type { Instruments, Labels, Reading } from "../telemetry/instruments.ts";

/** The state of a relay, as its metrics show it. */
export interface RelayFigures {
  readonly held: number;
  readonly partitions: number;
  readonly relays: number;
  readonly inFlight: number;
  readonly lagMs: number;
  readonly withheld: number;
}

export interface MetricsSource {
  on<E extends AppEventName>(name: E, listener: (event: AppEvents[E]) => void): void;
  /** The wall clock of this process. */
  now(): number;
  /** Null when this process has no relay, or is not started. */
  relay(): RelayFigures | null;
  /** What the store answered last; null when another process asks it, or none does. */
  depths(): QueueDepths | null;
}

/** How much each queue has to do, at some moment of the last interval. */
export interface QueueDepths {
  /** The store's clock. */
  readonly now: Date;
  readonly queues: readonly QueueDepth[];
}

const ends = [
  "succeeded",
  "failed",
  "crashed",
  "rolledBack",
  "snoozed",
  "released",
  "dead",
  "lost",
  "cancelled",
  "stale",
] as const;

/** Counts an app's events, from now on. */
export function observeApp(source: MetricsSource, make: Instruments): void {
  observeJobs(source, make);
  observeDispatch(source, make);
  observeRetries(source, make);
  observeRelay(source, make);
  observeQueues(source, make);
}

const byJob = ["name", "queue", "delivery"] as const;

/** A definition has one queue and one guarantee, so they make no more series than its name. */
function labelsOf({ name, queue, delivery }: Pick<JobFacts, (typeof byJob)[number]>): Labels {
  return { name, queue, delivery };
}

function observeJobs(source: MetricsSource, make: Instruments): void {
  const jobs = make.counter("escapement_jobs_total", "Jobs of this process by outcome", [
    ...byJob,
    "outcome",
  ]);
  for (const outcome of ends) source.on(outcome, ({ job }) => jobs.inc({ ...labelsOf(job), outcome }));
  const startDelay = make.histogram(
    "escapement_start_delay_seconds",
    "Time from when a job was due until its handler started here, by the clock of this process",
    byJob,
  );
  source.on("started", ({ job }) => {
    startDelay.observe(labelsOf(job), Math.max(0, source.now() - job.runAt.getTime()) / 1_000);
  });
  observeRuns(source, make);
  const leases = make.counter(
    "escapement_leases_lost_total",
    "Handlers that were stopped because their lease could not be renewed",
  );
  source.on("leaseLost", () => leases.inc({}));
  const reaped = make.counter(
    "escapement_reaped_total",
    "Jobs that this process found abandoned, expired or unreadable, by outcome",
    ["state"],
  );
  source.on("reaped", ({ state }) => reaped.inc({ state }));
  const errors = make.counter("escapement_errors_total", "Errors in this process by activity", ["during"]);
  // Without the key of a schedule: a thousand that cannot be planned are no thousand series.
  source.on("error", ({ during }) => errors.inc({ during: during.replace(/ ".*"$/, "") }));
}

function observeRuns(source: MetricsSource, make: Instruments): void {
  const run = make.histogram("escapement_run_seconds", "How long handlers took, by outcome", [
    ...byJob,
    "outcome",
  ]);
  for (const outcome of ["succeeded", "failed", "dead"] as const) {
    source.on(outcome, ({ job, ms }) => {
      // What was published ran elsewhere.
      if (ms > 0) run.observe({ ...labelsOf(job), outcome }, ms / 1_000);
    });
  }
}

function observeDispatch(source: MetricsSource, make: Instruments): void {
  const published = make.counter("escapement_published_total", "Jobs that a broker acknowledged", [
    "name",
    "transport",
  ]);
  const delay = make.histogram(
    "escapement_dispatch_delay_seconds",
    "Time from when a job was due until it was handed to the broker, by the store's clock",
    ["name"],
  );
  const answer = make.histogram("escapement_publish_seconds", "How long brokers took to acknowledge", [
    "transport",
  ]);
  const canary = make.histogram("escapement_canary_delay_seconds", "The dispatch delay of the canary");
  let canaryAt: number | null = null;
  const help = "When this process last published a canary, in seconds since 1970";
  make.gauge("escapement_canary_last_seconds", help, [], () => single(canaryAt));
  source.on("published", ({ job: { name }, transport, ms, lateMs }) => {
    if (transport === "canary") {
      canary.observe({}, lateMs / 1_000);
      canaryAt = source.now() / 1_000;
      return;
    }
    published.inc({ name, transport });
    delay.observe({ name }, lateMs / 1_000);
    answer.observe({ transport }, ms / 1_000);
  });
}

function observeRetries(source: MetricsSource, make: Instruments): void {
  const retries = make.counter(
    "escapement_dispatch_retry_total",
    "Dispatches to a broker to be retried, by phase",
    ["phase"],
  );
  const rollbacks = make.counter(
    "escapement_dispatch_rollback_total",
    "Publishes that were refused or went unanswered, and were rolled back",
    ["name", "why"],
  );
  const failed = make.counter(
    "escapement_dispatch_rollback_failed_total",
    "Rollbacks that could not be written; the job is published after its route's dispatch timeout at the latest",
    ["name"],
  );
  source.on("dispatchRetry", ({ job: { name }, phase, ambiguous }) => {
    retries.inc({ phase });
    if (phase === "publish") rollbacks.inc({ name, why: ambiguous ? "ambiguous" : "refused" });
    if (phase === "rollback_write") failed.inc({ name });
  });
}

function observeRelay(source: MetricsSource, make: Instruments): void {
  const gauge = (name: string, help: string, read: (figures: RelayFigures) => number): void =>
    make.gauge(`escapement_relay_${name}`, help, [], () => {
      const figures = source.relay();
      return single(figures === null ? null : read(figures));
    });
  gauge("partitions", "Partitions of the namespace", ({ partitions }) => partitions);
  gauge(
    "partitions_held",
    "Partitions that this process holds; the sum over all processes is the coverage",
    ({ held }) => held,
  );
  gauge("relays", "Relays that were alive when this one last looked", ({ relays }) => relays);
  gauge("in_flight", "Jobs that are named and not settled", ({ inFlight }) => inFlight);
  gauge(
    "checkpoint_lag_seconds",
    "How overdue the oldest due job on a partition of this process is",
    ({ lagMs }) => lagMs / 1_000,
  );
  gauge(
    "withheld",
    "Due jobs that are held back: no known route, a paused queue, or a broker in trouble",
    ({ withheld }) => withheld,
  );
  const changes = make.counter(
    "escapement_relay_partition_changes_total",
    "Partitions acquired, released and lost",
    ["change"],
  );
  source.on("partition", ({ change }) => changes.inc({ change }));
}

/** A gauge without labels; null: not shown. */
function single(value: number | null): readonly Reading[] {
  return value === null ? [] : [{ labels: {}, value }];
}

const depthStates = ["due", "later", "active", "blocked"] as const;

/** An app with a queue for each customer gets the longest ones; the rest is one line. */
const maxQueues = 200;
const otherQueues = "(others)";

function observeQueues(source: MetricsSource, make: Instruments): void {
  const queues = (): readonly QueueDepth[] => shown(source.depths()?.queues ?? []);
  make.gauge(
    "escapement_queue_jobs",
    "Jobs that have not ended, in the whole namespace; one process queries the store for them",
    ["queue", "state"],
    () =>
      queues().flatMap((depth) =>
        depthStates.map((state) => ({ labels: { queue: depth.queue, state }, value: depth[state] })),
      ),
  );
  make.gauge(
    "escapement_queue_oldest_due_seconds",
    "How overdue the oldest due job of a queue is; 0 if none is due",
    ["queue"],
    () => {
      const now = source.depths()?.now.getTime() ?? 0;
      return queues().map(({ queue, oldestDueAt }) => {
        const ageMs = oldestDueAt === null ? 0 : Math.max(0, now - oldestDueAt.getTime());
        return { labels: { queue }, value: ageMs / 1_000 };
      });
    },
  );
}

function shown(queues: readonly QueueDepth[]): readonly QueueDepth[] {
  if (queues.length <= maxQueues) return queues;
  const sorted = [...queues].sort((a, b) => b.due - a.due);
  const rest = sorted.slice(maxQueues - 1);
  const sum = (state: (typeof depthStates)[number]): number =>
    rest.reduce((total, depth) => total + depth[state], 0);
  const oldest = rest.flatMap(({ oldestDueAt }) => (oldestDueAt === null ? [] : [oldestDueAt.getTime()]));
  const others = {
    queue: otherQueues,
    due: sum("due"),
    later: sum("later"),
    active: sum("active"),
    blocked: sum("blocked"),
    oldestDueAt: oldest.length === 0 ? null : new Date(Math.min(...oldest)),
    isExact: rest.every(({ isExact }) => isExact),
  };
  return [...sorted.slice(0, maxQueues - 1), others];
}
