import { isUtf8 } from "node:buffer";
import type { KeyObject } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { systemClock } from "../clock.ts";
import { type Duration, parseDuration } from "../duration.ts";
import { EscapementError, recordError } from "../errors.ts";
import { StopReason } from "../handler.ts";
import type { ReceivedMessage } from "../message/source.ts";
import { ConsumerFigures, unknownName } from "../observe/consumer-figures.ts";
import { checkBoolean, checkInteger, checkKnown } from "../options.ts";
import { backoffMs } from "../retry.ts";
import { checkFacts } from "../transports/http/facts-signature.ts";
import { refusalHeader } from "../transports/http/judge.ts";
import { checkWebhook, readSecrets } from "../transports/http/signature.ts";
import { Attempts } from "./attempts.ts";
import { Dispatcher } from "./dispatch.ts";
import { Handling, type Understood } from "./handling.ts";
import { type HandlerOptions, handlerKeys, resolveHandlerOptions } from "./options.ts";
import { graceMs, within } from "./within.ts";

export interface HttpEndpointOptions extends HandlerOptions {
  /** The sender's secret, or several while one is being replaced. */
  readonly secret: string | readonly string[];
  /** A larger request is refused for good. @default 1048576 */
  readonly maxBodyBytes?: number;
  /** Counts for Prometheus, read with `endpoint.metrics()`. Needs the package prom-client. @default false */
  readonly metrics?: boolean;
}

/** What {@link httpEndpoint} returns: the same endpoint in three forms. */
export interface HttpEndpoint {
  /** For `node:http`, Express and the like. Nothing else may have read the body. */
  (request: IncomingMessage, response: ServerResponse): void;
  /** For Hono, Next.js and anything else that uses `Request` and `Response`. */
  fetch(request: Request): Promise<Response>;
  /** What this endpoint has counted, in Prometheus text format. Needs the option `metrics`. */
  metrics(): Promise<string>;
  /**
   * Lets handlers finish for `timeout` (30 s), then asks them to stop. Requests in the meantime are answered with 503, which makes an at-most-once
   * job dead at its sender: close the server first, so no requests arrive.
   */
  stop(options?: { readonly timeout?: Duration }): Promise<void>;
}

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly retryAfterMs?: number;
  /** Only this job is refused for now: the sender need not avoid the endpoint. */
  readonly ofJob?: boolean;
}

/**
 * An endpoint for what `http({ url, secret })` sends: it checks the signature, and runs the handler of the job's definition through the
 * inbox. The sender keeps the job until it is done: on 503 it retries later, on any 4xx the job is dead there.
 *
 * @example
 * createServer(httpEndpoint({ jobs: [payment], inbox, secret: process.env.PAY_SECRET })).listen(8080);
 */
export function httpEndpoint(options: HttpEndpointOptions): HttpEndpoint {
  checkKnown(options, [...handlerKeys, "secret", "maxBodyBytes", "metrics"], "httpEndpoint");
  const keys = readSecrets(options.secret, "secret of httpEndpoint");
  const limit = "maxBodyBytes of httpEndpoint";
  const maxBodyBytes = checkInteger(options.maxBodyBytes ?? 1_048_576, 1, 256 * 1_048_576, limit);
  const endpoint = new Endpoint(options, keys);
  const receive = async (request: IncomingMessage): Promise<Reply> => {
    if (request.method !== "POST") return { status: 405, text: "expected a POST" };
    const bytes = await readBody(request, maxBodyBytes);
    if (bytes === null) return tooLarge(maxBodyBytes);
    if (!isUtf8(bytes)) return notText;
    const headers: Record<string, string | undefined> = {};
    for (const [name, value] of Object.entries(request.headers)) headers[name] = value?.toString();
    return endpoint.answer(headers, bytes.toString());
  };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    receive(request)
      .then((reply) => {
        // The server's owner may have answered, or closed the connection, when it took too long.
        if (!response.headersSent && !response.destroyed)
          response.writeHead(reply.status, headersOf(reply)).end(reply.text);
      })
      // The sender has disconnected; there is no one to answer.
      .catch(() => response.destroy());
  };
  return Object.assign(handle, {
    async fetch(request: Request): Promise<Response> {
      if (request.method !== "POST") return respond({ status: 405, text: "expected a POST" });
      const bytes = await readFetched(request, maxBodyBytes);
      if (bytes === null) return respond(tooLarge(maxBodyBytes));
      if (!isUtf8(bytes)) return respond(notText);
      return respond(await endpoint.answer(Object.fromEntries(request.headers), bytes.toString()));
    },
    metrics: () => endpoint.metrics(),
    stop: (options?: { readonly timeout?: Duration }) => endpoint.stop(options),
  });
}

class Endpoint {
  readonly #keys: readonly KeyObject[];
  readonly #handling: Handling;
  readonly #dispatcher: Dispatcher;
  readonly #figures: ConsumerFigures | null;
  readonly #attempts = new Attempts();
  readonly #stopped = new AbortController();
  readonly #working = new Set<Promise<Reply>>();
  #isStopping = false;

  constructor(options: HttpEndpointOptions, keys: readonly KeyObject[]) {
    const resolved = resolveHandlerOptions(options, "httpEndpoint");
    this.#keys = keys;
    this.#dispatcher = new Dispatcher(systemClock, resolved.log, resolved.around);
    const isCounting = checkBoolean(options.metrics ?? false, "metrics of httpEndpoint");
    const figures = isCounting ? new ConsumerFigures(null) : null;
    this.#figures = figures;
    this.#handling = new Handling({
      ...resolved,
      dispatcher: this.#dispatcher,
      clock: systemClock,
      figures,
    });
  }

  async metrics(): Promise<string> {
    if (this.#figures !== null) return this.#figures.text();
    throw new EscapementError("metrics-off", "this endpoint has no metrics; create it with metrics: true");
  }

  async stop(options: { readonly timeout?: Duration } = {}): Promise<void> {
    checkKnown(options, ["timeout"], "stop");
    const timeoutMs = parseDuration(options.timeout ?? "30s", "the timeout of stop");
    this.#isStopping = true;
    const working = Promise.allSettled(this.#working);
    if (!(await within(systemClock, working, timeoutMs))) {
      this.#stopped.abort(new StopReason("shutdown", "the process stops"));
      await within(systemClock, working, graceMs);
    }
    await this.#dispatcher.stop();
  }

  async answer(headers: Readonly<Record<string, string | undefined>>, body: string): Promise<Reply> {
    if (this.#isStopping) return stopping;
    const work = this.#answer(headers, body).finally(() => this.#working.delete(work));
    this.#working.add(work);
    return work;
  }

  async #answer(headers: Readonly<Record<string, string | undefined>>, body: string): Promise<Reply> {
    const receivedAt = systemClock.now();
    const present = Object.entries(headers).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    );
    const message = { key: "", headers: Object.fromEntries(present), body };
    let understood: Understood;
    try {
      checkWebhook(headers, body, this.#keys, Date.now());
      checkFacts(headers, body, this.#keys);
      if (this.#handling.isOtherNamespace(message))
        throw new EscapementError("unknown-job", "this endpoint runs no jobs of that namespace");
      understood = this.#handling.understand(message);
      if (understood.facts.idempotencyKey !== headers["webhook-id"]) {
        throw new EscapementError(
          "invalid-message",
          "expected idempotency-key to be what was signed as webhook-id",
        );
      }
    } catch (error) {
      const reply = refusal(error);
      if (reply.status !== unauthorized) this.#figures?.ended(unknownName, "dead", null);
      return reply;
    }
    this.#figures?.received({ ...understood.facts, receivedAt });
    return this.#attempt(message, understood, receivedAt);
  }

  async #attempt(message: ReceivedMessage, understood: Understood, receivedAt: number): Promise<Reply> {
    const key = understood.facts.idempotencyKey;
    const attempt = this.#attempts.of(key) + 1;
    const stopped = this.#stopped.signal;
    const handled = await this.#handling.handle(message, understood, {
      attempt,
      isFirst: attempt === 1,
      receivedAt,
      stopped,
    });
    switch (handled.kind) {
      case "handled":
      case "duplicate":
        this.#attempts.forget(key);
        return { status: 200, text: handled.kind };
      case "busy":
        return { status: 503, text: "busy", retryAfterMs: handled.retryInMs, ofJob: handled.by === "copy" };
      case "snoozed":
        return { status: 503, text: "snoozed", retryAfterMs: handled.delayMs, ofJob: true };
      case "interrupted":
        return stopping;
      case "dead":
        // The sender learns it from the answer; if that is lost, the sender knows that the outcome is unknown.
        await handled.buried?.(true);
        this.#attempts.forget(key);
        return { status: 422, text: recordError(handled.error).message };
      case "failed": {
        const text = recordError(handled.error).message;
        if (attempt >= understood.attempts) {
          this.#attempts.forget(key);
          return { status: 422, text: `failed ${attempt} times: ${text}` };
        }
        this.#attempts.count(key);
        const retryAfterMs = backoffMs(understood.definition.backoff, attempt, Math.random());
        return { status: 503, text, retryAfterMs, ofJob: true };
      }
    }
  }
}

/** A request without a valid signature is not from a known sender, and is not counted. */
const unauthorized = 401;
const stopping: Reply = { status: 503, text: "stopping", retryAfterMs: 1_000 };

function refusal(error: unknown): Reply {
  const { message } = recordError(error);
  const code = error instanceof EscapementError ? error.code : "";
  if (code === "invalid-signature") return { status: unauthorized, text: message };
  return { status: code === "unknown-job" ? 404 : 400, text: message };
}

function tooLarge(maxBodyBytes: number): Reply {
  return { status: 413, text: `expected at most ${maxBodyBytes} bytes` };
}

function headersOf({ retryAfterMs, ofJob }: Reply): Record<string, string> {
  return {
    "content-type": "text/plain; charset=utf-8",
    ...(retryAfterMs !== undefined && { "retry-after": String(Math.ceil(retryAfterMs / 1_000)) }),
    ...(ofJob === true && { [refusalHeader]: "job" }),
  };
}

function respond(reply: Reply): Response {
  return new Response(reply.text, { status: reply.status, headers: headersOf(reply) });
}

/** What is signed is bytes, and other bytes could become the same string. */
const notText: Reply = { status: 400, text: "expected a body in UTF-8" };

/** Null when it is larger than allowed; the rest is not read. */
async function readFetched(request: Request, maxBytes: number): Promise<Buffer | null> {
  if (Number(request.headers.get("content-length")) > maxBytes) return null;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop cancels the stream.
  for await (const chunk of request.body ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Null when it is larger than allowed. The rest is read and discarded, so the answer arrives. */
async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes <= maxBytes) chunks.push(chunk as Buffer);
  }
  return bytes > maxBytes ? null : Buffer.concat(chunks);
}
