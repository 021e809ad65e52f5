import type { KeyObject } from "node:crypto";
import type { Agent } from "undici";
import type { Clock } from "../../clock.ts";
import { encodeHeader, type Message } from "../../message/message.ts";
import { heldBack, refused } from "../../message/publish-result.ts";
import type { PublishOptions, PublishResult, Transport } from "../../message/transport.ts";
import { Deadline } from "../deadline.ts";
import type { AddressGuard, ForbiddenAddress } from "./address-guard.ts";
import { factsSignatureHeader, factsSignatureOf } from "./facts-signature.ts";
import { judgeAnswer, judgeFailure } from "./judge.ts";
import { type Answer, post } from "./request.ts";
import { signatureOf } from "./signature.ts";

export interface HttpParts {
  readonly clock: Clock;
  readonly guard: AddressGuard;
  readonly agent: Agent;
  readonly keys: readonly KeyObject[];
  readonly headers: Readonly<Record<string, string>>;
  readonly concurrency: number;
  readonly requestTimeoutMs: number;
  readonly maxRedirects: number;
}

interface Target {
  readonly url: URL;
  readonly forbidden: ForbiddenAddress | null;
}

/** Posts each message separately, a bounded number at a time over kept connections. */
export class HttpTransport implements Transport {
  readonly #parts: HttpParts;
  readonly #waiting: (() => void)[] = [];
  /** The route's own, for every request: names and values in turn. */
  readonly #headers: readonly string[];
  /** Not secret: it is also sent on a redirect to another origin. */
  readonly #userAgent: string;
  #last: { readonly destination: string; readonly target: Target } | null = null;
  #running = 0;
  #closed = false;

  constructor(parts: HttpParts) {
    this.#parts = parts;
    const { "user-agent": userAgent = "escapement", ...headers } = parts.headers;
    this.#userAgent = userAgent;
    this.#headers = Object.entries(headers).flat();
  }

  async publish(messages: readonly Message[], options: PublishOptions): Promise<PublishResult[]> {
    const deadline = new Deadline(this.#parts.clock, options.timeoutMs);
    const results: PublishResult[] = new Array(messages.length).fill(heldBack);
    const byKey = Map.groupBy(messages.keys(), (index) => messages[index]?.key);
    await Promise.all(
      Array.from(byKey.values(), async (indexes) => {
        for (const index of indexes) {
          const result = await this.#inTurn(() => this.#send(messages[index] as Message, deadline, options));
          results[index] = result;
          // A message that was refused for good is never sent later, so nothing can overtake it.
          if (result.kind === "ambiguous" || (result.kind === "refused" && !result.permanent)) return;
        }
      }),
    );
    return results;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#parts.agent.destroy();
  }

  async #send(message: Message, deadline: Deadline, options: PublishOptions): Promise<PublishResult> {
    if (this.#closed) return refused("this transport was closed");
    if (deadline.isOver) return refused("not sent in time");
    const { agent, clock, maxRedirects } = this.#parts;
    const first = this.#targetOf(message.destination);
    const own = this.#headersOf(message);
    const within = this.#answerBy(deadline, options);
    let target = first;
    for (let redirects = 0; ; redirects++) {
      const { url, forbidden } = target;
      if (forbidden !== null) return judgeFailure({ error: forbidden, maybeSent: false }, url);
      const headers = url.origin === first.url.origin ? [...this.#headers, ...own] : own;
      const answer = await post({
        url,
        headers,
        body: message.body,
        sendBy: deadline,
        deadline: within,
        agent,
      });
      if ("error" in answer) return judgeFailure(answer, url);
      const next = redirectOf(answer, url);
      if (next === null) return judgeAnswer(answer, url, clock.now());
      if (!isSameHost(url, next)) {
        const why = `${url.host} redirected to ${next.host}, and another host gets no job and no signature; change the url of the route`;
        return refused(why, { permanent: true });
      }
      if (redirects === maxRedirects) {
        return refused(`${first.url.host} redirected more than ${maxRedirects} times`, { permanent: true });
      }
      target = this.#targetAt(next);
    }
  }

  /** A receiver may take as long as the sender can wait: that may be longer than was known when the publish began. */
  #answerBy(deadline: Deadline, { answerLeftMs }: PublishOptions): Deadline {
    const { clock, requestTimeoutMs } = this.#parts;
    const request = new Deadline(clock, requestTimeoutMs);
    const gainedMs = answerLeftMs && (() => Math.min(request.leftMs, answerLeftMs()));
    return new Deadline(clock, Math.min(request.leftMs, deadline.leftMs), gainedMs);
  }

  #headersOf({ key, dedupeId, headers, body }: Message): string[] {
    const id = headers["idempotency-key"] ?? dedupeId;
    const timestamp = Math.floor(this.#parts.clock.now() / 1_000);
    const facts = { ...headers, "escapement-key": encodeHeader(key) };
    const own = ["user-agent", this.#userAgent];
    for (const [name, value] of Object.entries(facts)) own.push(name, value);
    const { keys } = this.#parts;
    const signed = { id, timestamp, body };
    own.push("webhook-id", id, "webhook-timestamp", String(timestamp));
    own.push("webhook-signature", signatureOf(signed, keys));
    own.push(factsSignatureHeader, factsSignatureOf(signed, facts, keys));
    return own;
  }

  /** All messages of a route go to the same URL, which is parsed once. */
  #targetOf(destination: string): Target {
    if (this.#last?.destination !== destination) {
      this.#last = { destination, target: this.#targetAt(new URL(destination)) };
    }
    return this.#last.target;
  }

  #targetAt(url: URL): Target {
    return { url, forbidden: this.#parts.guard.refusal(url.hostname) };
  }

  /** Runs at most `concurrency` at a time. */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#parts.concurrency) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running += 1;
    }
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}

/** Only redirects that keep the method and the body are followed. */
function redirectOf({ status, headers }: Answer, from: URL): URL | null {
  const location = headers["location"];
  if ((status !== 307 && status !== 308) || typeof location !== "string") return null;
  const url = URL.parse(location, from.href);
  // Never from https down to http.
  const isFine = url !== null && (url.protocol === "https:" || url.protocol === from.protocol);
  return isFine ? url : null;
}

/** The same server; or the same name, on https instead of http. */
function isSameHost(from: URL, to: URL): boolean {
  if (from.origin === to.origin) return true;
  return from.hostname === to.hostname && from.protocol === "http:" && to.protocol === "https:";
}
