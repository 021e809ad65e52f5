import type { Clock } from "../clock.ts";
import type { AnyDefinition } from "../definition.ts";
import type { Emit } from "../events.ts";
import { checkDispatchable } from "../mend.ts";
import { encodeMessage, type Message } from "../message.ts";
import type { Settings } from "../settings.ts";
import type { ClaimedJob } from "../store.ts";
import type { Leg } from "../telemetry.ts";
import { traceOf } from "../trace.ts";
import type { PublishOptions, PublishResult, Route } from "../transport.ts";
import { messageKey } from "./message-key.ts";
import type { Outlet } from "./outlet.ts";
import type { Outlets } from "./outlets.ts";

export interface PublisherParts {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly definitions: ReadonlyMap<string, AnyDefinition>;
  readonly outlets: Outlets;
  readonly emit: Emit;
  /** How long the partition may still be relied on to be ours. */
  timeLeftMs(): number;
  /** How much of that a publish must have to begin: who asks too late to hear the answer has only made a copy, or lost a job. */
  readonly leastMs: number;
  /** The store's clock, a lower bound. */
  storeNow(): number;
  onClosed(ms: number): void;
  /** Exactly once for each job; `unsent` where it was not handed to the transport at all. */
  onResult(job: ClaimedJob, result: PublishResult | "unsent"): void;
}

interface Parcel {
  readonly job: ClaimedJob;
  readonly message: Message;
  readonly leg: Leg<PublishResult | "unsent"> | null;
}

/** Jobs that one call of a transport takes. */
interface Batch {
  readonly outlet: Outlet;
  readonly route: Route;
  readonly jobs: ClaimedJob[];
}

/** Hands named jobs to their transports, and says what became of each. */
export class Publisher {
  readonly #parts: PublisherParts;

  constructor(parts: PublisherParts) {
    this.#parts = parts;
  }

  /** Whether there is time enough for a publish. */
  get mayBegin(): boolean {
    return this.#parts.timeLeftMs() >= this.#parts.leastMs;
  }

  publish(jobs: readonly ClaimedJob[]): void {
    // Jobs of different timeouts do not wait for each other's, and each outlet hears of its own alone.
    const batches = new Map<Outlet, Map<number, Batch>>();
    for (const job of jobs) {
      const outlet = this.#parts.outlets.of(job.name);
      const route = this.#parts.definitions.get(job.name)?.route ?? null;
      if (outlet === undefined || route === null) {
        this.#parts.onResult(job, "unsent");
        continue;
      }
      const ofOutlet = batches.get(outlet) ?? new Map<number, Batch>();
      batches.set(outlet, ofOutlet);
      const batch = ofOutlet.get(route.dispatchTimeoutMs) ?? { outlet, route, jobs: [] };
      ofOutlet.set(route.dispatchTimeoutMs, batch);
      batch.jobs.push(job);
    }
    for (const ofOutlet of batches.values()) for (const batch of ofOutlet.values()) void this.#send(batch);
  }

  async #send({ outlet, route, jobs }: Batch): Promise<void> {
    const { clock, onResult, onClosed, timeLeftMs } = this.#parts;
    const made = jobs.map((job) => this.#parcel(job));
    // Only an asynchronous schema makes it wait: between here and the transport nothing else may come.
    const parcels = made.some((one) => one instanceof Promise)
      ? await Promise.all(made)
      : (made as (Parcel | null)[]);
    const ready = parcels.filter((parcel) => parcel !== null);
    if (ready.length === 0) return;
    const leftMs = timeLeftMs();
    if (!this.mayBegin) {
      for (const { job, leg } of ready) {
        leg?.end("unsent");
        onResult(job, "unsent");
      }
      return;
    }
    const sentAtMs = clock.monotonic();
    const storeNow = this.#parts.storeNow();
    const results = await this.#call(outlet, ready, {
      timeoutMs: Math.min(route.dispatchTimeoutMs, leftMs),
      // The partition is renewed meanwhile.
      answerLeftMs: () => Math.min(sentAtMs + route.dispatchTimeoutMs - clock.monotonic(), timeLeftMs()),
    });
    const nowMs = clock.monotonic();
    const isShut = !outlet.gate.isOpen(nowMs);
    const closedMs = outlet.heard(results, sentAtMs, nowMs);
    if (closedMs > 0 || isShut) onClosed(closedMs);
    const ms = clock.monotonic() - sentAtMs;
    for (const [index, { job, message, leg }] of ready.entries()) {
      const result = results[index] ?? missing;
      leg?.end(result);
      if (result.kind === "acknowledged")
        this.#tell(job, outlet, message, ms, storeNow - job.runAt.getTime());
      onResult(job, result);
    }
  }

  async #call(outlet: Outlet, parcels: readonly Parcel[], options: PublishOptions): Promise<PublishResult[]> {
    try {
      return await outlet.transport.publish(
        parcels.map(({ message }) => message),
        options,
      );
    } catch (thrown) {
      // It promised not to throw, so nobody knows how far it came.
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      return parcels.map(() => ({ kind: "ambiguous", error }));
    }
  }

  /** The message of a job; null when its input no longer fits its definition, which the job does not survive. */
  #parcel(job: ClaimedJob): Parcel | null | Promise<Parcel | null> {
    const refuse = (thrown: unknown): null => {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      this.#parts.onResult(job, { kind: "refused", error, permanent: true });
      return null;
    };
    try {
      const definition = this.#parts.definitions.get(job.name);
      if (definition === undefined || definition.route === null) return null;
      checkDispatchable(job);
      const { destination } = definition.route;
      const now = this.#parts.storeNow();
      // Right after a takeover nothing is known of the store's clock.
      const publishedAt = Number.isFinite(now) ? new Date(now) : null;
      const toParcel = (key: string): Parcel => {
        const leg = this.#begin(job, destination);
        const trace = leg?.trace ?? traceOf(job.tags);
        const message = encodeMessage(this.#parts.settings.namespace, job, {
          destination,
          key,
          publishedAt,
          trace,
        });
        return { job, message, leg };
      };
      const key = messageKey(definition, job);
      return key instanceof Promise ? key.then(toParcel).catch(refuse) : toParcel(key);
    } catch (error) {
      return refuse(error);
    }
  }

  #begin(job: ClaimedJob, destination: string): Parcel["leg"] {
    const { settings, outlets } = this.#parts;
    const { telemetry } = settings;
    if (telemetry === null) return null;
    const transport = outlets.of(job.name)?.kind ?? "";
    return telemetry.publishing({ job, trace: traceOf(job.tags), transport, destination });
  }

  #tell(job: ClaimedJob, outlet: Outlet, message: Message, ms: number, lateMs: number): void {
    const { destination } = message;
    this.#parts.emit("published", {
      job,
      transport: outlet.kind,
      destination,
      ms,
      lateMs: Math.max(0, lateMs),
    });
  }
}

const missing: PublishResult = {
  kind: "ambiguous",
  error: new Error("the transport gave no answer for this message"),
};
