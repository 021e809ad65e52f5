/** A job's trace context, in the form of W3C Trace Context: https://www.w3.org/TR/trace-context/ */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
}

/**
 * A job's context is kept among its tags: every store has them, no index knows them, and a job without one costs nothing. Tags of users have no
 * control characters, so this one cannot be theirs; it is never shown as a tag.
 */
const tagPrefix = "\u001ftrace:";

const parentForm = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
/** Printable ASCII that begins and ends with a visible character, so any broker carries it as it is. */
const stateForm = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const longestState = 512;

/**
 * The context in two headers; null if the first is not valid. A state that cannot be carried is left out, as the standard has it: neither is a
 * reason to refuse a job.
 */
export function readTrace(
  traceparent: string | undefined,
  tracestate: string | undefined,
): TraceContext | null {
  if (traceparent === undefined || !parentForm.test(traceparent)) return null;
  const hasState =
    tracestate !== undefined && tracestate.length <= longestState && stateForm.test(tracestate);
  return hasState ? { traceparent, tracestate } : { traceparent };
}

/** Tags with a context among them. */
export function withTrace(tags: readonly string[], trace: TraceContext | null): readonly string[] {
  if (trace === null) return tags;
  const { traceparent, tracestate = "" } = trace;
  return [...withoutTrace(tags), `${tagPrefix}${traceparent};${tracestate}`];
}

/** The context among the tags that a store has kept; null if there is none that can be read. */
export function traceOf(tags: readonly string[]): TraceContext | null {
  for (const tag of tags) {
    if (!tag.startsWith(tagPrefix)) continue;
    const text = tag.slice(tagPrefix.length);
    const end = text.indexOf(";");
    return readTrace(text.slice(0, end), text.slice(end + 1));
  }
  return null;
}

/** Tags as users know them. The same list where there is nothing to leave out. */
export function withoutTrace(tags: readonly string[]): readonly string[] {
  return tags.some(isTrace) ? tags.filter((tag) => !isTrace(tag)) : tags;
}

function isTrace(tag: string): boolean {
  return tag.startsWith(tagPrefix);
}
