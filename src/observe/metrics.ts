import type { AppEventName, AppEvents } from "../events.ts";
import { Instruments } from "./instruments.ts";

/** How a relay is doing, as its metrics tell it. */
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

/** Counts what an app's events tell, from now on. */
export async function observeApp(source: MetricsSource): Promise<Instruments> {
  const make = await Instruments.load();
  observeJobs(source, make);
  observeDispatch(source, make);
  observeRetries(source, make);
  observeRelay(source, make);
  return make;
}

function observeJobs(source: MetricsSource, make: Instruments): void {
  const jobs = make.counter("escapement_jobs_total", "What became of the jobs of this process", [
    "name",
    "outcome",
  ]);
  for (const outcome of ends) source.on(outcome, ({ job }) => jobs.inc({ name: job.name, outcome }));
  const startDelay = make.histogram(
    "escapement_start_delay_seconds",
    "From when a job was due until its handler started here, by the clock of this process",
    ["name"],
  );
  source.on("started", ({ job }) => {
    startDelay.observe({ name: job.name }, Math.max(0, source.now() - job.runAt.getTime()) / 1_000);
  });
  const run = make.histogram("escapement_run_seconds", "How long handlers took that succeeded", ["name"]);
  source.on("succeeded", ({ job, ms }) => {
    // What was published ran elsewhere.
    if (ms > 0) run.observe({ name: job.name }, ms / 1_000);
  });
  const leases = make.counter(
    "escapement_leases_lost_total",
    "Handlers that were stopped because their lease could not be kept",
  );
  source.on("leaseLost", () => leases.inc());
  const errors = make.counter("escapement_errors_total", "Trouble of this process, by what it was doing", [
    "during",
  ]);
  // Without the key of a schedule: a thousand that cannot be planned are no thousand series.
  source.on("error", ({ during }) => errors.inc({ during: during.replace(/ ".*"$/, "") }));
}

function observeDispatch(source: MetricsSource, make: Instruments): void {
  const published = make.counter("escapement_published_total", "Jobs that a broker acknowledged", [
    "name",
    "transport",
  ]);
  const delay = make.histogram(
    "escapement_dispatch_delay_seconds",
    "From when a job was due until it was handed to the broker, by the store's clock",
    ["name"],
  );
  const answer = make.histogram("escapement_publish_seconds", "How long brokers took to acknowledge", [
    "transport",
  ]);
  const canary = make.histogram("escapement_canary_delay_seconds", "The dispatch delay of the canary");
  let canaryAt: number | null = null;
  const help = "When this process last published a canary, in seconds since 1970";
  make.gauge("escapement_canary_last_seconds", help, () => canaryAt);
  source.on("published", ({ job: { name }, transport, ms, lateMs }) => {
    if (transport === "canary") {
      canary.observe(lateMs / 1_000);
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
    "Dispatches to a broker that must be tried again, by phase",
    ["phase"],
  );
  const rollbacks = make.counter(
    "escapement_dispatch_rollback_total",
    "Publishes that were refused, or of which nobody knows, and were rolled back",
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
    make.gauge(`escapement_relay_${name}`, help, () => {
      const figures = source.relay();
      return figures === null ? null : read(figures);
    });
  gauge("partitions", "How many partitions there are", ({ partitions }) => partitions);
  gauge(
    "partitions_held",
    "How many of them this process holds; the sum over all processes is the coverage",
    ({ held }) => held,
  );
  gauge("relays", "How many relays were alive when this one last looked", ({ relays }) => relays);
  gauge("in_flight", "Jobs that are named and not settled", ({ inFlight }) => inFlight);
  gauge(
    "checkpoint_lag_seconds",
    "How long the oldest job that is due on a partition of this process has been so",
    ({ lagMs }) => lagMs / 1_000,
  );
  gauge(
    "withheld",
    "Due jobs that are left alone: no known route, a paused queue, or a broker in trouble",
    ({ withheld }) => withheld,
  );
  const changes = make.counter(
    "escapement_relay_partition_changes_total",
    "Partitions acquired, released and lost",
    ["change"],
  );
  source.on("partition", ({ change }) => changes.inc({ change }));
}
