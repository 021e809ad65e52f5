import {
  type Attributes,
  type Context,
  context,
  type Histogram,
  type Meter,
  metrics,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { EscapementError } from "../errors.ts";
import { type HandlerJob, Snooze } from "../handler.ts";
import type { PublishResult } from "../message/transport.ts";
import type { EnqueueReceipt } from "../receipt.ts";
import { version } from "../runtime/version.ts";
import type { Middleware } from "../telemetry/middleware.ts";
import type { Enqueuing, Leg, Planning, Publishing, Telemetry } from "../telemetry/telemetry.ts";
import { metered } from "./instruments.ts";
import { toSpanContext, toTrace } from "./span-context.ts";

export interface OpenTelemetryOptions {
  /** @default the global provider's */
  readonly tracer?: Tracer;
  /** Where figures go; false: nowhere. @default the global provider's */
  readonly meter?: Meter | false;
}

const scope = "escapement";

/**
 * Traces and measures through the OpenTelemetry API: register an SDK, and pass this as `telemetry` to `createEscapement`, `consume` and
 * `httpEndpoint`. The span around an enqueue is the parent of the handler's, wherever and whenever it runs; a retry, a redrive and an occurrence
 * of a schedule begin their own trace, with a link to it.
 *
 * @example
 * const app = createEscapement({ jobs, telemetry: openTelemetry() });
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  const { tracer = trace.getTracer(scope, version), meter = metrics.getMeter(scope, version) } = options;
  const durations = meter === false ? null : durationsOf(meter);
  return {
    middleware: processing(tracer, durations),
    instruments: meter === false ? null : metered(meter),
    current: () => toTrace(trace.getSpanContext(context.active())),
    enqueuing: (what, write) => enqueuing(tracer, durations, what, write),
    publishing: (what) => publishing(tracer, durations, what),
    planning: (what) => planning(tracer, what),
  };
}

/** The durations that the semantic conventions for messaging name. */
interface Durations {
  readonly operation: Histogram;
  readonly process: Histogram;
}

function durationsOf(meter: Meter): Durations {
  const advice = { explicitBucketBoundaries: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] };
  const options = { unit: "s", advice };
  return {
    operation: meter.createHistogram("messaging.client.operation.duration", options),
    process: meter.createHistogram("messaging.process.duration", options),
  };
}

async function enqueuing<R extends EnqueueReceipt | EnqueueReceipt[]>(
  tracer: Tracer,
  durations: Durations | null,
  { name, queue, count }: Enqueuing,
  write: () => Promise<R>,
): Promise<R> {
  const common: Attributes = {
    "messaging.system": scope,
    "messaging.operation.name": "enqueue",
    "messaging.operation.type": "send",
    ...(queue === null ? {} : { "messaging.destination.name": queue }),
  };
  const attributes = {
    ...common,
    ...(name === null ? {} : { "escapement.job.name": name }),
    ...(count === 1 ? {} : { "messaging.batch.message_count": count }),
  };
  const span = tracer.startSpan(`enqueue ${queue ?? name ?? "jobs"}`, {
    kind: SpanKind.PRODUCER,
    attributes,
  });
  const timed = timing(durations?.operation, common);
  try {
    const receipts = await context.with(trace.setSpan(context.active(), span), write);
    const [one] = [receipts].flat();
    if (one !== undefined && count === 1) {
      span.setAttribute("messaging.message.id", one.id);
      span.setAttribute("escapement.enqueue.outcome", one.outcome);
    }
    timed(null);
    return receipts;
  } catch (error) {
    failed(span, error);
    timed(error);
    throw error;
  } finally {
    span.end();
  }
}

function planning(tracer: Tracer, { schedule, fireAt, job }: Planning): Leg<boolean> {
  const span = tracer.startSpan(
    `plan ${job.queue}`,
    {
      kind: SpanKind.PRODUCER,
      attributes: {
        "messaging.system": scope,
        "messaging.destination.name": job.queue,
        "messaging.operation.name": "plan",
        "messaging.operation.type": "create",
        "messaging.message.id": job.id,
        "escapement.job.name": job.name,
        "escapement.schedule": schedule,
        "escapement.fire_at": fireAt.toISOString(),
      },
    },
    ROOT_CONTEXT,
  );
  // One that another planner was faster with is never ended, so it is never exported.
  return { trace: toTrace(span.spanContext()), end: (isAdded) => isAdded && span.end() };
}

function publishing(
  tracer: Tracer,
  durations: Durations | null,
  { job, trace: kept, transport, destination }: Publishing,
): Leg<PublishResult | "unsent"> {
  const common: Attributes = {
    "messaging.system": transport,
    "messaging.destination.name": addressOf(destination),
    "messaging.operation.name": "publish",
    "messaging.operation.type": "send",
  };
  const attributes = { ...common, "messaging.message.id": job.id, "escapement.job.name": job.name };
  const parent = kept === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, toSpanContext(kept));
  const name = `publish ${addressOf(destination)}`;
  const span = tracer.startSpan(name, { kind: SpanKind.PRODUCER, attributes }, parent);
  const timed = timing(durations?.operation, common);
  return {
    trace: toTrace(span.spanContext()),
    end(result) {
      if (result === "unsent") return;
      const error = result.kind === "acknowledged" ? null : result.error;
      if (error !== null) failed(span, error);
      timed(error);
      span.end();
    },
  };
}

function processing(tracer: Tracer, durations: Durations | null): Middleware {
  return async function traced({ job }, next) {
    const { parent, span } = startProcessing(tracer, job);
    const timed = timing(durations?.process, {
      "messaging.system": scope,
      "messaging.destination.name": job.queue,
      "messaging.operation.name": "process",
      "messaging.operation.type": "process",
      "escapement.job.name": job.name,
    });
    try {
      const value = await context.with(trace.setSpan(parent, span), next);
      if (value instanceof Snooze) span.setAttribute("escapement.snoozed_ms", value.delayMs);
      timed(null);
      return value;
    } catch (error) {
      failed(span, error);
      timed(error);
      throw error;
    } finally {
      span.end();
    }
  };
}

/** A handler does not run on behalf of the code that called `start`: the surrounding context is not its parent. */
function startProcessing(tracer: Tracer, job: HandlerJob): { readonly parent: Context; readonly span: Span } {
  const kept = job.trace === undefined ? null : toSpanContext(job.trace);
  const isLinked = job.attempt > 1 || job.redrives > 0 || job.schedule !== null;
  const parent = kept === null || isLinked ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, kept);
  const span = tracer.startSpan(
    `process ${job.queue}`,
    {
      kind: SpanKind.CONSUMER,
      attributes: {
        "messaging.system": scope,
        "messaging.destination.name": job.queue,
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.message.id": job.id,
        "escapement.job.name": job.name,
        "escapement.job.delivery": job.delivery,
        "escapement.job.attempt": job.attempt,
        "escapement.job.redrives": job.redrives,
        ...(job.schedule === null ? {} : { "escapement.schedule": job.schedule }),
      },
      links: isLinked && kept !== null ? [{ context: kept }] : [],
    },
    parent,
  );
  return { parent, span };
}

function failed(span: Span, error: unknown): void {
  span.recordException(error instanceof Error ? error : String(error));
  span.setAttribute("error.type", typeOf(error));
  span.setStatus({
    code: SpanStatusCode.ERROR,
    message: error instanceof Error ? error.message : String(error),
  });
}

function timing(histogram: Histogram | undefined, attributes: Attributes): (error: unknown) => void {
  const startedAt = performance.now();
  return (error) =>
    histogram?.record((performance.now() - startedAt) / 1_000, {
      ...attributes,
      ...(error === null ? {} : { "error.type": typeOf(error) }),
    });
}

function typeOf(error: unknown): string {
  if (error instanceof EscapementError) return error.code;
  return error instanceof Error ? error.name : "_OTHER";
}

/** What follows the path of a URL can be anything, also secret. */
function addressOf(destination: string): string {
  if (!/^https?:/.test(destination) || !URL.canParse(destination)) return destination;
  const { origin, pathname } = new URL(destination);
  return origin + pathname;
}
