import type { Clock } from "../clock.ts";
import type { AnyDefinition } from "../definition.ts";
import type { Emit } from "../events.ts";
import { encodeMessage, type Message } from "../message/message.ts";
import { ambiguous } from "../message/publish-result.ts";
import type { PublishOptions, PublishResult } from "../message/transport.ts";
import { checkKey } from "../names.ts";
import { validate } from "../schema.ts";
import type { Settings } from "../settings.ts";
import type { ClaimedJob } from "../store/claims.ts";
import type { Leg } from "../telemetry/telemetry.ts";
import { traceOf } from "../telemetry/trace.ts";
import { checkDispatchable } from "../unreadable.ts";
import type { Destination } from "./destinations.ts";
import type { NamedJob } from "./in-flight.ts";

export interface PublisherParts {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly definitions: ReadonlyMap<string, AnyDefinition>;
  readonly emit: Emit;
  /** How long this process can still rely on owning the partition. */
  timeLeftMs(): number;
  /** The store's clock, a lower bound. */
  storeNow(): number;
  /** A destination is left alone for this long; 0: it is reachable again. */
  onCircuit(openMs: number): void;
  /** Exactly once for each job; `unsent` if it was not handed to the transport at all. */
  onResult(named: NamedJob, result: PublishResult | "unsent"): void;
}

interface Outgoing {
  readonly named: NamedJob;
  readonly message: Message;
  readonly leg: Leg<PublishResult | "unsent"> | null;
}

/**
 * A publish does not begin with less than this part of the lease left: if its answer came too late, it would only have
 * made a copy, or lost an at-most-once job.
 */
const leastLease = 1 / 5;

/** Hands named jobs to their destinations, and reports the result of each. */
export class Publisher {
  readonly #parts: PublisherParts;

  constructor(parts: PublisherParts) {
    this.#parts = parts;
  }

  /** Whether there is enough time for a publish. */
  get mayBegin(): boolean {
    return this.#parts.timeLeftMs() >= leastLease * this.#parts.settings.leaseMs;
  }

  publish(jobs: readonly NamedJob[]): void {
    // Jobs with different timeouts do not wait for each other, and each destination gets only its own results.
    for (const [destination, itsJobs] of Map.groupBy(jobs, (named) => named.destination)) {
      if (destination === undefined) for (const named of itsJobs) this.#parts.onResult(named, "unsent");
      else
        for (const [timeoutMs, batch] of Map.groupBy(itsJobs, (named) => named.dispatchTimeoutMs))
          void this.#send(destination, timeoutMs, batch);
    }
  }

  async #send(destination: Destination, timeoutMs: number, jobs: readonly NamedJob[]): Promise<void> {
    const { clock, emit, onResult, onCircuit, timeLeftMs, storeNow } = this.#parts;
    const made = jobs.map((named) => this.#outgoing(named, destination));
    // Only an asynchronous schema makes this wait: otherwise jobs reach the transport in this turn of the event loop.
    const all = made.some((one) => one instanceof Promise)
      ? await Promise.all(made)
      : (made as (Outgoing | null)[]);
    const ready = all.filter((one) => one !== null);
    if (ready.length === 0) return;
    const leftMs = timeLeftMs();
    if (!this.mayBegin) {
      for (const { named, leg } of ready) {
        leg?.end("unsent");
        onResult(named, "unsent");
      }
      return;
    }
    const [sentAtMs, sentAt] = [clock.monotonic(), storeNow()];
    const results = await callTransport(destination, ready, {
      timeoutMs: Math.min(timeoutMs, leftMs),
      // The partition is renewed meanwhile.
      answerLeftMs: () => Math.min(sentAtMs + timeoutMs - clock.monotonic(), timeLeftMs()),
    });
    const nowMs = clock.monotonic();
    const wasOpen = destination.breaker.isOpen(nowMs);
    const openMs = destination.record(results, sentAtMs, nowMs);
    if (openMs > 0 || wasOpen) onCircuit(openMs);
    for (const [index, { named, leg }] of ready.entries()) {
      const result = results[index] ?? unanswered;
      leg?.end(result);
      if (result.kind === "acknowledged") {
        const { kind: transport, name } = destination;
        const lateMs = Math.max(0, sentAt - named.job.runAt.getTime());
        emit("published", { job: named.job, transport, destination: name, ms: nowMs - sentAtMs, lateMs });
      }
      onResult(named, result);
    }
  }

  /** The message of a job; null if its input no longer fits its definition, which ends the job. */
  #outgoing(
    named: NamedJob,
    { kind: transport, name: destination }: Destination,
  ): Outgoing | null | Promise<Outgoing | null> {
    const { settings, definitions, onResult, storeNow } = this.#parts;
    const { job } = named;
    const withKey = (key: string): Outgoing => {
      const trace = traceOf(job.tags);
      const leg = settings.telemetry?.publishing({ job, trace, transport, destination }) ?? null;
      const now = storeNow();
      // Right after a takeover nothing is known of the store's clock.
      const publishedAt = Number.isFinite(now) ? new Date(now) : null;
      const place = { destination, key, publishedAt, trace: leg?.trace ?? trace };
      return { named, message: encodeMessage(settings.namespace, job, place), leg };
    };
    const refuse = (thrown: unknown): null => {
      onResult(named, { kind: "refused", error: errorOf(thrown), permanent: true });
      return null;
    };
    try {
      checkDispatchable(job);
      const key = messageKey(definitions.get(job.name), job);
      return key instanceof Promise ? key.then(withKey).catch(refuse) : withKey(key);
    } catch (error) {
      return refuse(error);
    }
  }
}

async function callTransport(
  { transport }: Destination,
  outgoing: readonly Outgoing[],
  options: PublishOptions,
): Promise<PublishResult[]> {
  try {
    const messages = outgoing.map(({ message }) => message);
    return await transport.publish(messages, options);
  } catch (thrown) {
    // Transports must not throw; if one does, the result is unknown.
    return outgoing.map(() => ({ kind: "ambiguous", error: errorOf(thrown) }));
  }
}

/**
 * What keeps messages together in a broker: the concurrency key if the definition has one, otherwise the job's id.
 * Throws, or rejects, when the input no longer fits its definition. A promise only if the schema is asynchronous.
 */
function messageKey(definition: AnyDefinition | undefined, job: ClaimedJob): string | Promise<string> {
  const key = definition?.concurrency?.key ?? null;
  if (definition === undefined || key === null) return job.id;
  const what = `job ${JSON.stringify(definition.name)}`;
  // The value was validated against this definition's schema, which is what its key function takes.
  const keyOf = (value: unknown): string => checkKey(key(value as never), `the concurrency key of ${what}`);
  const input: unknown = JSON.parse(job.input);
  if (definition.schema === null) return keyOf(input);
  const value = validate(definition.schema, input, what);
  return value instanceof Promise ? value.then(keyOf) : keyOf(value);
}

function errorOf(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

const unanswered = ambiguous("the transport gave no answer for this message");
