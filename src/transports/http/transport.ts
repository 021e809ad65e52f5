import type { KeyObject } from "node:crypto";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Clock } from "../../clock.ts";
import { Deadline } from "../../deadline.ts";
import { encodeHeader, type Message } from "../../message.ts";
import { heldBack, refused } from "../../publish-result.ts";
import type { PublishOptions, PublishResult, Transport } from "../../transport.ts";
import type { AddressGuard } from "./address-guard.ts";
import { judgeAnswer, judgeFailure } from "./judge.ts";
import { type Answer, type Posting, post } from "./request.ts";
import { signatureOf } from "./signature.ts";

export interface HttpParts {
  readonly clock: Clock;
  readonly guard: AddressGuard;
  readonly keys: readonly KeyObject[];
  readonly headers: Readonly<Record<string, string>>;
  readonly concurrency: number;
  readonly requestTimeoutMs: number;
  readonly maxRedirects: number;
}

/** Posts each message by itself, a bounded number at a time over connections that are kept. */
export class HttpTransport implements Transport {
  readonly #parts: HttpParts;
  readonly #agents: { readonly http: HttpAgent; readonly https: HttpsAgent };
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #closed = false;

  constructor(parts: HttpParts) {
    this.#parts = parts;
    const options = { keepAlive: true, maxFreeSockets: parts.concurrency, scheduling: "lifo" } as const;
    this.#agents = { http: new HttpAgent(options), https: new HttpsAgent(options) };
  }

  async publish(messages: readonly Message[], { timeoutMs }: PublishOptions): Promise<PublishResult[]> {
    const deadline = new Deadline(this.#parts.clock, timeoutMs);
    const results: PublishResult[] = new Array(messages.length).fill(heldBack);
    const lanes = Map.groupBy(messages.keys(), (index) => messages[index]?.key);
    await Promise.all(
      Array.from(lanes.values(), async (indexes) => {
        for (const index of indexes) {
          const result = await this.#inTurn(() => this.#send(messages[index] as Message, deadline));
          results[index] = result;
          // One that was refused for good will not come later either, so that nothing can overtake it.
          if (result.kind === "ambiguous" || (result.kind === "refused" && !result.permanent)) return;
        }
      }),
    );
    return results;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#agents.http.destroy();
    this.#agents.https.destroy();
  }

  async #send(message: Message, deadline: Deadline): Promise<PublishResult> {
    if (this.#closed) return refused("this transport was closed");
    if (deadline.isOver) return refused("not sent in time");
    const { clock, guard, headers, keys, requestTimeoutMs, maxRedirects } = this.#parts;
    const id = message.headers["idempotency-key"] ?? message.dedupeId;
    const timestamp = Math.floor(clock.now() / 1_000);
    const own = {
      ...message.headers,
      "escapement-key": encodeHeader(message.key),
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": signatureOf({ id, timestamp, body: message.body }, keys),
    };
    const first = new URL(message.destination);
    const within = new Deadline(clock, Math.min(requestTimeoutMs, deadline.leftMs));
    const posting = { body: message.body, clock, deadline: within, guard, agents: this.#agents };
    let url = first;
    for (let redirects = 0; ; redirects++) {
      const all = url.origin === first.origin ? { ...headers, ...own } : own;
      const answer = await attempt({ ...posting, url, headers: all });
      if ("kind" in answer) return answer;
      const next = redirectOf(answer, url);
      if (next === null) return judgeAnswer(answer, url, clock.now());
      if (redirects === maxRedirects) {
        return refused(`${first.host} redirected more than ${maxRedirects} times`, { permanent: true });
      }
      url = next;
    }
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

async function attempt(posting: Posting): Promise<Answer | PublishResult> {
  const outcome = await post(posting);
  return "status" in outcome ? outcome : judgeFailure(outcome, posting.url);
}

/** Only redirects that keep the method and the body are followed. */
function redirectOf({ status, headers }: Answer, from: URL): URL | null {
  const location = headers["location"];
  if ((status !== 307 && status !== 308) || location === undefined) return null;
  const url = URL.parse(location, from.href);
  // From https it never goes down to http.
  const isFine = url !== null && (url.protocol === "https:" || url.protocol === from.protocol);
  return isFine ? url : null;
}
