import type { AnyDefinition } from "./definition.ts";
import { type Duration, parseDuration } from "./duration.ts";
import { describe, EscapementError } from "./errors.ts";
import { consoleLogger, type Logger } from "./log.ts";
import { checkName } from "./names.ts";
import { checkBoolean, checkDuration, checkInteger, checkKnown, checkNumber, checkOneOf } from "./options.ts";
import { type ConfigFile, readConfigFile } from "./runtime/config-file.ts";
import type { EffectInbox } from "./store/inbox.ts";
import type { StoreFactory } from "./store/opening.ts";
import { longestLeaseMs, slotCount } from "./store/partitions.ts";
import { checkMiddleware, type Middleware } from "./telemetry/middleware.ts";
import { checkTelemetry, type Telemetry } from "./telemetry/telemetry.ts";

export interface RetentionOptions {
  /** @default "7d" */
  readonly succeeded?: Duration;
  /** @default "7d" */
  readonly cancelled?: Duration;
  /** @default "30d" */
  readonly dead?: Duration;
  /** @default "30d" */
  readonly lost?: Duration;
  /** The ledger of schedules. @default "90d" */
  readonly occurrences?: Duration;
  /** The audit log. @default "90d" */
  readonly audit?: Duration;
}

export interface RelayOptions {
  /**
   * The minimum number of partitions of a namespace, which relays share among them. A higher number than before raises it for
   * all of them; it is never lowered.
   *
   * @default 16
   */
  readonly partitions?: number;
  /** How many jobs this process may have named and not settled: at most these are published again if it dies. @default 4096 */
  readonly inFlight?: number;
  /** At most how many jobs of a backlog (due for more than a second) this process publishes per second. @default no limit */
  readonly backlogPerSecond?: number;
  /** How often to send a canary, a small job, through store and relay, to measure how late it is published. @default never */
  readonly canary?: Duration;
}

export interface MetricsOptions {
  /** Where `GET /metrics` is answered once the app is started; 0: any free port. @default nowhere */
  readonly port?: number;
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** Your own registry of prom-client, which then also has this app's figures. @default one for this app alone */
  readonly registry?: MetricsRegistry;
  /** How often one process of the fleet queries the store for queue depths. @default "15s" */
  readonly interval?: Duration;
}

/** A `Registry` of prom-client: the methods that are used. */
export interface MetricsRegistry {
  readonly contentType: string;
  metrics(): Promise<string>;
  registerMetric(metric: never): void;
  getSingleMetric(name: string): unknown;
}

export interface EscapementOptions {
  /** A URL (`"sqlite:app.db"`) or a factory (`sqlite({ … })`). Environment: `ESCAPEMENT_STORE`. @default "sqlite:.escapement/escapement.db" */
  readonly store?: string | StoreFactory;
  /** Apps of different namespaces share a database but do not see each other. Environment: `ESCAPEMENT_NAMESPACE`. @default "default" */
  readonly namespace?: string;
  /** The definitions this process knows. */
  readonly jobs?: readonly AnyDefinition[];
  /** How long a claim holds without renewal. Environment: `ESCAPEMENT_LEASE`. @default "30s" */
  readonly lease?: Duration;
  /** How often leases are renewed; the lease must be more than twice as long. @default a third of the lease */
  readonly heartbeat?: Duration;
  /** How often to look for work and for expired leases when there are no notices. Environment: `ESCAPEMENT_POLL`. @default "1s" */
  readonly poll?: Duration;
  /** The maximum number of jobs per claim. Environment: `ESCAPEMENT_BATCH`. @default 100 */
  readonly batch?: number;
  /** How many handlers this process runs at once. Environment: `ESCAPEMENT_CONCURRENCY`. @default 10 */
  readonly concurrency?: number;
  /**
   * Jobs that will start within this time, judged by how long handlers take, are claimed before there is room for them, so that short handlers do not
   * wait for the store. Never at-most-once jobs, nor those with keys or in queues with limits. "0ms": never. @default "30ms"
   */
  readonly lookAhead?: Duration;
  /** Maximum attempts: how many may fail before a job is dead, for definitions that do not say. Environment: `ESCAPEMENT_ATTEMPTS`. @default 5 */
  readonly attempts?: number;
  /** Crashes until a job is dead as poison, for definitions that do not say. @default 3 */
  readonly maxCrashes?: number;
  /** The largest input or result, in bytes of JSON. @default 1048576 */
  readonly maxInputBytes?: number;
  /** How long finished jobs are kept; an id is idempotent for that long. */
  readonly retention?: RetentionOptions;
  /** Whether to create and upgrade the schema on first use. @default true */
  readonly migrate?: boolean;
  /** Runs at-most-once jobs although the store may forget acknowledged writes. @default false */
  readonly acceptWeakDurability?: boolean;
  /** An SQL inbox, which gives effectively-once jobs their transaction on a store that has none, such as Redis. */
  readonly inbox?: EffectInbox;
  /** Names of jobs that this node's planner does not let schedules fire: recorded as skipped. @default none */
  readonly disallow?: readonly string[];
  /** What to do when a schedule in the store differs from the one in the code. @default "code-wins" */
  readonly scheduleConflict?: ScheduleConflict;
  /** How this process publishes jobs that have a route. */
  readonly relay?: RelayOptions;
  /** Metrics for Prometheus, returned by `app.metrics()` or served at a port. Needs the package prom-client. @default false */
  readonly metrics?: boolean | MetricsOptions;
  /** What runs around every handler of this process, the first outermost; `app.use` adds to it. @default nothing */
  readonly middleware?: readonly Middleware[];
  /** Traces and measures this process: `openTelemetry()` of `escapement/opentelemetry`. @default none */
  readonly telemetry?: Telemetry;
  /** Where the library's own lines go. @default warnings and errors to the console */
  readonly log?: Logger;
}

/** `error`: refuse. `code-wins`: the code's replaces the store's. `store-wins`: the store's stays. */
export type ScheduleConflict = "error" | "code-wins" | "store-wins";

export const scheduleConflicts = ["error", "code-wins", "store-wins"] as const satisfies ScheduleConflict[];

/** The options, resolved once. */
export interface Settings {
  readonly store: string | StoreFactory;
  readonly jobs: readonly AnyDefinition[];
  readonly log: Logger;
  readonly namespace: string;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly pollMs: number;
  readonly batch: number;
  readonly concurrency: number;
  readonly lookAheadMs: number;
  readonly attempts: number;
  readonly maxCrashes: number;
  readonly maxInputBytes: number;
  readonly retention: {
    readonly succeededMs: number;
    readonly cancelledMs: number;
    readonly deadMs: number;
    readonly lostMs: number;
    readonly occurrencesMs: number;
    readonly auditMs: number;
  };
  readonly migrate: boolean;
  readonly acceptWeakDurability: boolean;
  readonly inbox: EffectInbox | null;
  readonly disallow: readonly string[];
  readonly scheduleConflict: ScheduleConflict;
  readonly relay: {
    readonly partitions: number;
    readonly inFlight: number;
    readonly backlogPerSecond: number;
    readonly canaryMs: number | null;
  };
  readonly metrics: MetricsSettings | null;
  readonly middleware: readonly Middleware[];
  readonly telemetry: Telemetry | null;
}

export interface MetricsSettings {
  /** Null: nowhere. */
  readonly port: number | null;
  readonly host: string;
  /** Null: one of its own. */
  readonly registry: MetricsRegistry | null;
  readonly everyMs: number;
}

const optionKeys = [
  "store",
  "namespace",
  "jobs",
  "lease",
  "heartbeat",
  "poll",
  "batch",
  "concurrency",
  "lookAhead",
  "attempts",
  "maxCrashes",
  "maxInputBytes",
  "retention",
  "migrate",
  "acceptWeakDurability",
  "inbox",
  "disallow",
  "scheduleConflict",
  "relay",
  "metrics",
  "middleware",
  "telemetry",
  "log",
] as const satisfies (keyof EscapementOptions)[];

/** What the environment can set, and under which name. */
const environmentKeys = {
  store: "ESCAPEMENT_STORE",
  namespace: "ESCAPEMENT_NAMESPACE",
  lease: "ESCAPEMENT_LEASE",
  poll: "ESCAPEMENT_POLL",
  batch: "ESCAPEMENT_BATCH",
  concurrency: "ESCAPEMENT_CONCURRENCY",
  attempts: "ESCAPEMENT_ATTEMPTS",
} as const satisfies Partial<Record<keyof EscapementOptions, string>>;

const numericKeys: readonly string[] = ["batch", "concurrency", "attempts"];

/**
 * Resolves options over environment over file over defaults, and checks what must fit together.
 *
 * @param file reads the config file; not called where store and jobs are given: the file may import the caller.
 */
export function resolveSettings(
  options: EscapementOptions,
  environment: Readonly<Record<string, string | undefined>> = process.env,
  file: () => ConfigFile | null = () => readConfigFile(process.cwd()),
): Settings {
  checkKnown(options, optionKeys, "createEscapement");
  const isComplete = options.store !== undefined && options.jobs !== undefined;
  const merged: EscapementOptions = {
    ...(isComplete ? {} : fromFile(file())),
    ...fromEnvironment(environment),
    ...withoutUndefined(options),
  };
  const leaseMs = checkDuration(merged.lease ?? "30s", "lease", 0, longestLeaseMs);
  const settings = Object.freeze({
    store: checkStore(merged.store ?? "sqlite:.escapement/escapement.db"),
    jobs: checkJobs(merged.jobs ?? []),
    log: checkLog(merged.log ?? consoleLogger),
    namespace: checkName(merged.namespace ?? "default", "namespace"),
    leaseMs,
    heartbeatMs: parseDuration(merged.heartbeat ?? Math.floor(leaseMs / 3), "heartbeat"),
    pollMs: parseDuration(merged.poll ?? "1s", "poll"),
    batch: checkInteger(merged.batch ?? 100, 1, 10_000, "batch"),
    lookAheadMs: parseDuration(merged.lookAhead ?? "30ms", "lookAhead"),
    concurrency: checkInteger(merged.concurrency ?? 10, 1, 100_000, "concurrency"),
    attempts: checkInteger(merged.attempts ?? 5, 1, 1_000, "attempts"),
    maxCrashes: checkInteger(merged.maxCrashes ?? 3, 1, 1_000, "maxCrashes"),
    maxInputBytes: checkInteger(merged.maxInputBytes ?? 1_048_576, 1, 256 * 1_048_576, "maxInputBytes"),
    retention: resolveRetention(merged.retention ?? {}),
    migrate: checkBoolean(merged.migrate ?? true, "migrate"),
    acceptWeakDurability: checkBoolean(merged.acceptWeakDurability ?? false, "acceptWeakDurability"),
    inbox: merged.inbox ?? null,
    disallow: (merged.disallow ?? []).map((name) => checkName(name, "a name in disallow")),
    scheduleConflict: checkOneOf(
      merged.scheduleConflict ?? "code-wins",
      scheduleConflicts,
      "scheduleConflict",
    ),
    relay: resolveRelay(merged.relay ?? {}),
    metrics: resolveMetrics(merged.metrics ?? false),
    middleware: checkMiddleware(merged.middleware ?? [], "middleware"),
    telemetry: merged.telemetry === undefined ? null : checkTelemetry(merged.telemetry, "telemetry"),
  } satisfies Settings);
  checkTogether(settings, merged);
  return settings;
}

/** Says values as they were given, not as they were resolved. */
function checkTogether(settings: Settings, given: EscapementOptions): void {
  const { leaseMs, heartbeatMs, pollMs } = settings;
  const lease = describe(given.lease ?? "30s");
  if (given.heartbeat === undefined && heartbeatMs < 1)
    throw new EscapementError("invalid-option", `expected lease to be at least 3 ms, got ${lease}`);
  if (heartbeatMs < 1 || leaseMs <= 2 * heartbeatMs) {
    throw new EscapementError(
      "invalid-option",
      `expected lease to be more than twice as long as heartbeat (${describe(given.heartbeat)}), got ${lease}`,
    );
  }
  if (pollMs < 1)
    throw new EscapementError(
      "invalid-option",
      `expected poll to be at least 1 ms, got ${describe(given.poll)}`,
    );
}

function resolveRetention(options: RetentionOptions): Settings["retention"] {
  checkKnown(options, ["succeeded", "cancelled", "dead", "lost", "occurrences", "audit"], "retention");
  return {
    succeededMs: parseDuration(options.succeeded ?? "7d", "retention.succeeded"),
    cancelledMs: parseDuration(options.cancelled ?? "7d", "retention.cancelled"),
    deadMs: parseDuration(options.dead ?? "30d", "retention.dead"),
    lostMs: parseDuration(options.lost ?? "30d", "retention.lost"),
    occurrencesMs: parseDuration(options.occurrences ?? "90d", "retention.occurrences"),
    auditMs: parseDuration(options.audit ?? "90d", "retention.audit"),
  };
}

function resolveRelay(options: RelayOptions): Settings["relay"] {
  checkKnown(options, ["partitions", "inFlight", "backlogPerSecond", "canary"], "relay");
  const { backlogPerSecond, canary } = options;
  const partitions = checkInteger(options.partitions ?? 16, 1, slotCount, "relay.partitions");
  return {
    partitions,
    // Each partition needs room for one.
    inFlight: checkInteger(options.inFlight ?? 4_096, partitions, 1_000_000, "relay.inFlight"),
    canaryMs:
      canary === undefined
        ? null
        : checkNumber(parseDuration(canary, "relay.canary"), 1_000, 86_400_000, "relay.canary"),
    backlogPerSecond:
      backlogPerSecond === undefined
        ? Number.POSITIVE_INFINITY
        : checkNumber(backlogPerSecond, 0.001, 1_000_000_000, "relay.backlogPerSecond"),
  };
}

export function resolveMetrics(options: boolean | MetricsOptions): MetricsSettings | null {
  if (options === false) return null;
  const given = options === true ? {} : options;
  checkKnown(given, ["port", "host", "registry", "interval"], "metrics");
  const { port, host = "127.0.0.1", registry, interval = "15s" } = given;
  return {
    port: port === undefined ? null : checkInteger(port, 0, 65_535, "metrics.port"),
    host: checkName(host, "metrics.host"),
    registry: registry === undefined ? null : checkRegistry(registry),
    everyMs: checkDuration(interval, "metrics.interval", 100),
  };
}

function checkRegistry(registry: MetricsRegistry): MetricsRegistry {
  if (typeof registry === "object" && typeof registry?.registerMetric === "function") return registry;
  throw new EscapementError(
    "invalid-option",
    `expected metrics.registry to be a Registry of prom-client, got ${describe(registry)}`,
  );
}

function checkJobs(jobs: unknown): readonly AnyDefinition[] {
  if (!Array.isArray(jobs)) {
    throw new EscapementError(
      "invalid-option",
      `expected jobs to be a list of definitions, got ${describe(jobs)}`,
    );
  }
  for (const job of jobs) {
    if (typeof job !== "object" || job === null || !("backoff" in job)) {
      throw new EscapementError(
        "invalid-option",
        `expected jobs to hold what defineJob returned, got ${describe(job)}`,
      );
    }
  }
  return jobs;
}

function checkLog(log: Logger): Logger {
  const missing = (["debug", "info", "warn", "error"] as const).find(
    (level) => typeof log[level] !== "function",
  );
  if (missing === undefined) return log;
  throw new EscapementError(
    "invalid-option",
    `expected log to be a logger with debug, info, warn and error, and it has no ${missing}`,
  );
}

function checkStore(store: unknown): string | StoreFactory {
  if (typeof store === "string" && store !== "") return store;
  if (typeof store === "object" && store !== null && "open" in store) return store as StoreFactory;
  throw new EscapementError(
    "invalid-option",
    `expected store to be a URL such as "sqlite:app.db" or a factory such as memory(), got ${describe(store)}`,
  );
}

function fromEnvironment(environment: Readonly<Record<string, string | undefined>>): EscapementOptions {
  const found: Record<string, unknown> = {};
  for (const [key, variable] of Object.entries(environmentKeys)) {
    const text = environment[variable];
    if (text === undefined || text === "") continue;
    // A bare number is milliseconds in a duration and a count elsewhere; what is not a number is judged by the option's own check.
    const isNumber = /^\d+$/.test(text) && (numericKeys.includes(key) || key === "lease" || key === "poll");
    found[key] = isNumber ? Number(text) : text;
  }
  return found as EscapementOptions;
}

function fromFile(file: ConfigFile | null): EscapementOptions {
  if (file === null) return {};
  if (Object.hasOwn(Object(file.options), "schedules")) {
    const advice = "put schedules into escapement.schedules.yaml, or write them with app.schedule";
    throw new EscapementError("invalid-option", `unknown option "schedules" of ${file.name}; ${advice}`);
  }
  checkKnown(file.options, optionKeys, file.name);
  return withoutUndefined(file.options);
}

function withoutUndefined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;
}
