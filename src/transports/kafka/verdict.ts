import { ambiguous, refused, textOf } from "../../message/publish-result.ts";
import type { PublishResult } from "../../message/transport.ts";

/** The result of one partition's part of a request. */
export type Verdict =
  | { readonly kind: "acknowledged" }
  /** The batch as a whole is larger than the topic accepts: smaller ones may fit. */
  | { readonly kind: "too-large"; readonly text: string }
  | { readonly kind: "failed"; readonly result: PublishResult };

/** The client's errors, as far as they are used here. */
interface ClientError extends Error {
  readonly code?: string;
  readonly errors?: readonly ClientError[];
  readonly response?: { readonly responses?: readonly TopicResponse[] };
}

interface TopicResponse {
  readonly name: string;
  readonly partitionResponses: readonly { readonly index: number; readonly errorCode: number }[];
}

/** Answers by which a broker says that it does not know, or that it has the batch and other replicas do not. */
const unsure = new Map([
  [-1, "UNKNOWN_SERVER_ERROR"],
  [7, "REQUEST_TIMED_OUT"],
  [13, "NETWORK_EXCEPTION"],
  [20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"],
  [46, "DUPLICATE_SEQUENCE_NUMBER"],
  [56, "KAFKA_STORAGE_ERROR"],
]);

/** Answers that no retry will change, unless a person changes something first. */
const forGood = new Map([
  [17, "INVALID_TOPIC_EXCEPTION"],
  [29, "TOPIC_AUTHORIZATION_FAILED"],
  [31, "CLUSTER_AUTHORIZATION_FAILED"],
  [32, "INVALID_TIMESTAMP"],
  [43, "UNSUPPORTED_FOR_MESSAGE_FORMAT"],
  [44, "POLICY_VIOLATION"],
  [87, "INVALID_RECORD"],
]);

const tooLarge = new Map([
  [10, "MESSAGE_TOO_LARGE"],
  [18, "RECORD_LIST_TOO_LARGE"],
]);

/** What a failed send means for a partition. The client sends several times with the same sequence numbers; the last answer counts. */
export function verdictOf(error: unknown, topic: string, partition: number, where: string): Verdict {
  const attempts = attemptsOf(error as ClientError);
  const answers = attempts.map((attempt) => answerOf(attempt, topic, partition));
  const code = answers.findLast((answer) => answer !== null) ?? null;
  if (code === 0) return { kind: "acknowledged" };
  const text = `Kafka ${where}: ${nameOf(code) ?? textOf(leafOf(error))}`;
  if (code !== null && tooLarge.has(code)) return { kind: "too-large", text };
  const isSure = attempts.every(
    (attempt, index) => answers[index] !== null || wasNotSent.test(leafOf(attempt).message),
  );
  if (!isSure || (code !== null && unsure.has(code))) return failed(ambiguous(text, error));
  return failed(refused(text, { cause: error, permanent: code !== null && forGood.has(code) }));
}

/** What the client reports when it never got to sending. */
const wasNotSent =
  /^Connection to \S+ (failed|timed out)|^Cannot connect to any broker|^Connection closed while waiting for ready|^Cannot get a connection|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH/;

function failed(result: PublishResult): Verdict {
  return { kind: "failed", result };
}

function nameOf(code: number | null): string | undefined {
  return code === null
    ? undefined
    : (unsure.get(code) ?? forGood.get(code) ?? tooLarge.get(code) ?? `error ${code}`);
}

/** The attempts of one send, in order, however they were wrapped. A broker's answer is one attempt, however many errors it lists. */
function attemptsOf(error: ClientError): ClientError[] {
  if (error.response !== undefined || !Array.isArray(error.errors) || error.errors.length === 0)
    return [error];
  return error.errors.flatMap(attemptsOf);
}

function answerOf(error: ClientError, topic: string, partition: number): number | null {
  const found = error.response?.responses
    ?.find(({ name }) => name === topic)
    ?.partitionResponses.find(({ index }) => index === partition);
  return found?.errorCode ?? null;
}

function leafOf(error: unknown): Error {
  const { errors } = error as ClientError;
  const last = errors?.at(-1);
  return last === undefined ? (error as Error) : leafOf(last);
}
