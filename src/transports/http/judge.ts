import { acknowledged, ambiguous, refused, textOf } from "../../message/publish-result.ts";
import type { PublishResult } from "../../message/transport.ts";
import { ForbiddenAddress } from "./address-guard.ts";
import type { Answer, Failure } from "./request.ts";

/** In an answer: what is refused for now. `job`: only this one, others are welcome. */
export const refusalHeader = "escapement-refusal";

const longestRetryAfterMs = 24 * 3_600_000;

/** What an answer's status means for the message. */
export function judgeAnswer({ status, headers, text }: Answer, url: URL, nowMs: number): PublishResult {
  if (status >= 200 && status < 300) return acknowledged;
  const said = inOneLine(text);
  const what = `${url.host} answered ${status}${said === "" ? "" : `: ${said}`}`;
  if (status === 429 || status === 503) {
    const retryAfterMs = readRetryAfter(headers["retry-after"], nowMs);
    const ofJob = headers[refusalHeader] === "job";
    return refused(what, { ofJob, ...(retryAfterMs === null ? {} : { retryAfterMs }) });
  }
  // Both say that the request was not processed, and ask for it again.
  if (status === 408 || status === 425) return refused(what);
  if (status >= 300 && status < 400) {
    return refused(`${what}; such a redirect is not followed, change the url of the route`, {
      permanent: true,
    });
  }
  if (status >= 400 && status < 500) return refused(what, { permanent: true });
  return ambiguous(what);
}

/** What a request without an answer means. */
export function judgeFailure({ error, maybeSent }: Failure, url: URL): PublishResult {
  const what = `${url.host}: ${textOf(error)}`;
  if (maybeSent) return ambiguous(what, error);
  return refused(what, { cause: error, permanent: error instanceof ForbiddenAddress || isUnfit(error) });
}

/** The client refused to start: such a request is never sent. */
function isUnfit(error: Error): boolean {
  return "code" in error && error.code === "UND_ERR_INVALID_ARG";
}

/** Keeps the text as it is, except for what would break a line of a log or move a terminal's cursor. */
function inOneLine(text: string): string {
  return text.replaceAll(/ *[\p{Cc}\u2028\u2029][\p{Cc}\u2028\u2029 ]*/gu, " ").trim();
}

/** Seconds, or a date. */
function readRetryAfter(value: string | string[] | undefined, nowMs: number): number | null {
  if (typeof value !== "string") return null;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - nowMs;
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), longestRetryAfterMs);
}
