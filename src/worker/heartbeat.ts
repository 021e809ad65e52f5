import { Worker as Thread } from "node:worker_threads";
import type { Logger } from "../log.ts";
import { siblingModule } from "../runtime/sibling-module.ts";
import type { ClaimRef } from "../store/claims.ts";
import type { StoreAddress } from "../store/opening.ts";
import { ClaimTable } from "./claim-table.ts";
import {
  type HeartbeatMessage,
  type HeartbeatPlan,
  type HeartbeatReport,
  micros,
  millis,
  sharedLength,
  sharedPulse,
  sharedSentAt,
} from "./heartbeat-protocol.ts";
import { type Renewal, Renewer, type RenewerParts } from "./renewer.ts";
import { threadOptions } from "./thread-options.ts";

/** What keeps the leases of a worker alive. */
export interface Heartbeat {
  /** Resolves when it beats, or when it never will. */
  readonly ready: Promise<void>;
  /** Keeps a claim from now on, in place of an earlier one of the same job. */
  keep(renewal: Renewal): void;
  /** Stops keeping it. */
  drop(claim: ClaimRef): void;
  /** Called regularly, to show that the main loop runs. */
  pulse(): void;
  /**
   * When the latest renewal that covers a claim kept since `keptSinceMs` was sent, or null. It answers at once, even when
   * the message about that renewal is still waiting behind a blocked main loop.
   */
  renewedAtMs(keptSinceMs: number): number | null;
  stop(): Promise<void>;
}

/**
 * In the main loop: for stores that no second thread can reach, and for simulations. A handler that blocks the loop
 * also blocks it.
 */
export function loopHeartbeat(parts: Omit<RenewerParts, "held" | "mayRenew" | "onCovered">): Heartbeat {
  const claims = new Map<string, Renewal>();
  const held = (): Renewal[] => [...claims.values()];
  const renewer = new Renewer({ ...parts, held, mayRenew: () => true, onCovered() {} });
  renewer.start();
  return {
    ready: Promise.resolve(),
    keep: (renewal) => void claims.set(renewal.id, renewal),
    drop({ id, token }) {
      if (claims.get(id)?.token === token) claims.delete(id);
    },
    pulse() {},
    renewedAtMs: () => null,
    stop: () => renewer.stop(),
  };
}

export interface ThreadHeartbeatParts
  extends Omit<RenewerParts, "held" | "mayRenew" | "onCovered" | "store" | "random"> {
  readonly address: StoreAddress;
  readonly namespace: string;
  readonly log: Logger;
  /** The thread ended on its own: nothing renews the leases now. */
  readonly onGone: () => void;
}

const bundledHeartbeat =
  "escapement was bundled, and a bundle has no file to start the heartbeat's thread from; mark escapement as external in the bundler";

/**
 * In its own thread, with its own connection: a handler may block the main loop and still keep its lease.
 * With a long lease nothing has to wait for it: it finds what is held meanwhile when it is ready.
 *
 * @returns null when there can be no thread; the caller falls back to the main loop.
 */
export function threadHeartbeat(parts: ThreadHeartbeatParts): Heartbeat | null {
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
  thread.on("error", (error) => log.warn({ error }, "the heartbeat thread failed"));
  const beats = Promise.withResolvers<void>();
  void gone.then(beats.resolve);
  thread.on("message", (report: HeartbeatReport) => {
    // Ended from here: not every runtime lets a thread close its own port.
    if (report.kind === "stopped") void thread.terminate();
    else if (report.kind === "ready") beats.resolve();
    else tell(report, parts);
  });
  let isStopping = false;
  void gone.then(() => isStopping || parts.onGone());
  const post = (message: HeartbeatMessage): void => thread.postMessage(message);
  const claims = new ClaimTable((sheet) => post({ kind: "sheet", sheet }));
  return {
    ready: beats.promise,
    keep: (renewal) => claims.put(renewal),
    drop: (claim) => claims.remove(claim),
    pulse,
    renewedAtMs(keptSinceMs) {
      const sentAtMs = millis(Atomics.load(shared, sharedSentAt));
      return sentAtMs <= keptSinceMs ? null : sentAtMs;
    },
    async stop() {
      isStopping = true;
      thread.ref();
      post({ kind: "stop" });
      await gone;
    },
  };
}

function tell(report: HeartbeatReport, parts: ThreadHeartbeatParts): void {
  switch (report.kind) {
    case "renewed":
      return parts.onRenewed(report.claims, report.sentAtMs);
    case "stale":
      return parts.onStale(report.claims);
    case "cancel":
      return parts.onCancel(report.claims);
    case "error":
      return parts.onError(report.error);
    case "ready":
    case "stopped":
      return;
  }
}
