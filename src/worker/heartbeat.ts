import { Worker as Thread } from "node:worker_threads";
import type { Logger } from "../log.ts";
import { siblingModule } from "../sibling-module.ts";
import type { ClaimRef, StoreAddress } from "../store.ts";
import {
  type HeartbeatMessage,
  type HeartbeatNews,
  type HeartbeatPlan,
  micros,
  millis,
  sharedCovers,
  sharedLength,
  sharedPulse,
  sharedSentAt,
} from "./heartbeat-protocol.ts";
import { type Renewal, Renewer, type RenewerParts } from "./renewer.ts";
import { threadOptions } from "./thread-options.ts";

/** What keeps the leases of a worker alive. */
export interface Heartbeat {
  /** Keeps some claims from now on, and others no longer. */
  keep(renewals: readonly Renewal[], dropped: readonly ClaimRef[]): void;
  /** Told regularly that the main loop turns. */
  pulse(): void;
  /**
   * When the latest renewal that covers a claim held since `heldAtMs` was sent, or null. It answers at once, also when the
   * news of that renewal is still waiting behind a blocked main loop.
   */
  renewedAtMs(heldAtMs: number): number | null;
  stop(): Promise<void>;
}

/** In the main loop: for stores that no second thread can reach, and for simulations. A handler that blocks the loop also blocks it. */
export function loopHeartbeat(parts: Omit<RenewerParts, "mayRenew" | "onCovered">): Heartbeat {
  const renewer = new Renewer({ ...parts, mayRenew: () => true, onCovered() {} });
  renewer.start();
  return {
    keep: (renewals, dropped) => renewer.keep(renewals, dropped, parts.clock.monotonic()),
    pulse() {},
    renewedAtMs: () => null,
    stop: () => renewer.stop(),
  };
}

export interface ThreadHeartbeatParts
  extends Omit<RenewerParts, "mayRenew" | "onCovered" | "store" | "random"> {
  readonly address: StoreAddress;
  readonly namespace: string;
  readonly log: Logger;
  /** The thread ended by itself: nobody keeps the leases any more. */
  readonly onGone: () => void;
}

const bundledHeartbeat =
  "escapement was bundled, and a bundle has no file to start the heartbeat's thread from; mark escapement as external in the bundler";

/**
 * In a thread of its own, with a connection of its own: a handler may block the main loop and still keeps its lease.
 *
 * @returns null when there is no thread, or it cannot reach the store; the caller falls back to the main loop.
 */
export async function threadHeartbeat(parts: ThreadHeartbeatParts): Promise<Heartbeat | null> {
  const { clock, log } = parts;
  const entry = siblingModule(import.meta.url, "heartbeat-thread");
  if (entry === null) {
    log.warn({}, bundledHeartbeat);
    return null;
  }
  const shared = new BigInt64Array(new SharedArrayBuffer(sharedLength * 8));
  const pulse = (): void => {
    Atomics.store(shared, sharedPulse, micros(clock.monotonic()));
  };
  pulse();
  const plan: HeartbeatPlan = {
    address: parts.address,
    namespace: parts.namespace,
    claimer: parts.claimer,
    leaseMs: parts.leaseMs,
    heartbeatMs: parts.heartbeatMs,
    shared,
  };
  const thread = new Thread(entry, { workerData: plan, ...threadOptions() });
  thread.unref();
  const gone = new Promise<void>((resolve) => thread.once("exit", () => resolve()));
  const ready = await new Promise<boolean>((resolve) => {
    thread.once("exit", () => resolve(false));
    thread.on("error", (error) => {
      log.warn({ error }, "the heartbeat thread failed");
      resolve(false);
    });
    thread.on("message", (news: HeartbeatNews) => {
      if (news.kind === "ready") resolve(true);
      // Ended from here: not every runtime lets a thread close its own port.
      else if (news.kind === "stopped") void thread.terminate();
      else tell(news, parts);
    });
  });
  if (!ready) return null;
  let isStopping = false;
  void gone.then(() => isStopping || parts.onGone());
  const post = (message: HeartbeatMessage): void => thread.postMessage(message);
  return {
    keep: (renewals, dropped) =>
      post({
        kind: "claims",
        held: {
          id: renewals.map(({ id }) => id),
          token: renewals.map(({ token }) => token),
          timeoutAtMs: renewals.map(({ timeoutAtMs }) => timeoutAtMs),
        },
        dropped: {
          id: dropped.map(({ id }) => id),
          token: dropped.map(({ token }) => token),
        },
        heldAtMs: clock.monotonic(),
      }),
    pulse,
    renewedAtMs(heldAtMs) {
      if (millis(Atomics.load(shared, sharedCovers)) < heldAtMs) return null;
      return millis(Atomics.load(shared, sharedSentAt));
    },
    async stop() {
      isStopping = true;
      thread.ref();
      post({ kind: "stop" });
      await gone;
    },
  };
}

function tell(news: HeartbeatNews, parts: ThreadHeartbeatParts): void {
  switch (news.kind) {
    case "renewed":
      return parts.onRenewed(news.claims, news.sentAtMs);
    case "stale":
      return parts.onStale(news.claims);
    case "cancel":
      return parts.onCancel(news.claims);
    case "error":
      return parts.onError(news.error);
    case "ready":
    case "stopped":
      return;
  }
}
