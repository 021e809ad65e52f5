import { createTraceState, isSpanContextValid, type SpanContext } from "@opentelemetry/api";
import { readTrace, type TraceContext } from "../telemetry/trace.ts";

/** As it is kept with a job. By the W3C's form whatever propagators the process has: who reads it may be another program. */
export function toTrace(span: SpanContext | undefined): TraceContext | null {
  if (span === undefined || !isSpanContextValid(span)) return null;
  const flags = span.traceFlags.toString(16).padStart(2, "0");
  const state = span.traceState?.serialize();
  return readTrace(`00-${span.traceId}-${span.spanId}-${flags}`, state === "" ? undefined : state);
}

export function toSpanContext({ traceparent, tracestate }: TraceContext): SpanContext {
  const [, traceId = "", spanId = "", flags = "00"] = traceparent.split("-");
  return {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  };
}
