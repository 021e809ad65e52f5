import { readFacts } from "../../message/facts.ts";
import type { Message } from "../../message/message.ts";
import { ambiguous, refused } from "../../message/publish-result.ts";
import type { PublishOptions, PublishResult, Route, Transport } from "../../message/transport.ts";
import type { CrashPoints } from "../crash-points.ts";
import type { NodeLog } from "../node-log.ts";
import type { PublishDrill, Strike } from "./drill.ts";

export interface WatchParts {
  readonly log: NodeLog;
  readonly crashes: CrashPoints;
  readonly drill: PublishDrill | null;
}

/** A route whose every message and answer is written down, and may be struck by the drill. */
export function watchedRoute(route: Route, parts: WatchParts): Route {
  const { transport } = route;
  return {
    ...route,
    transport: {
      kind: transport.kind,
      get address() {
        return transport.address;
      },
      open: async (context) => new WatchedTransport(await transport.open(context), parts),
    },
  };
}

class WatchedTransport implements Transport {
  readonly #transport: Transport;
  readonly #parts: WatchParts;

  constructor(transport: Transport, parts: WatchParts) {
    this.#transport = transport;
    this.#parts = parts;
  }

  async publish(messages: readonly Message[], options: PublishOptions): Promise<PublishResult[]> {
    const { log, crashes, drill } = this.#parts;
    const facts = messages.map(({ headers }) => readFacts(headers));
    crashes.pass("before publish");
    for (const { id: job, token, attempt, schedule, fireAt } of facts) {
      const at = schedule === null ? null : fireAt.getTime();
      log.relay({ what: "publish", job, token, attempt, timeoutMs: options.timeoutMs, schedule, fireAt: at });
    }
    const struck = facts.map((one) => drill?.strike(one) ?? null);
    const sent = messages.filter((_, index) => isSent(struck[index] ?? null));
    const publishing = sent.length === 0 ? Promise.resolve([]) : this.#transport.publish(sent, options);
    setImmediate(() => crashes.pass("in the middle of a publish"));
    const answers = [...(await publishing)];
    const results = struck.map((strike) => answerOf(strike, isSent(strike) ? answers.shift() : undefined));
    for (const [index, { id: job, token }] of facts.entries()) {
      const result = results[index];
      const error = result === undefined || result.kind === "acknowledged" ? null : result.error.message;
      const drilled = (struck[index] ?? null) !== null;
      log.relay({ what: "answer", job, token, how: result?.kind ?? "ambiguous", drilled, error });
    }
    crashes.pass("after publish");
    return results;
  }

  async close(): Promise<void> {
    await this.#transport.close();
  }
}

function isSent(strike: Strike | null): boolean {
  return strike === null || strike === "doubt";
}

function answerOf(strike: Strike | null, answer: PublishResult | undefined): PublishResult {
  if (strike === "refuse") return refused("the drill wants it so");
  // What was refused for certain is no matter of doubt.
  if (strike === null || answer?.kind === "refused") return answer ?? ambiguous("the transport said nothing");
  return ambiguous("the drill wants it so");
}
