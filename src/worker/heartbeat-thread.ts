/** The heartbeat's own thread: it opens the store again by its address and renews what the main loop holds. */
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../clock.ts";
import { consoleLogger } from "../log.ts";
import type { StoreContext } from "../store/opening.ts";
import type { Store } from "../store/store.ts";
import { ClaimTableReader } from "./claim-table.ts";
import {
  type HeartbeatMessage,
  type HeartbeatPlan,
  type HeartbeatReport,
  micros,
  millis,
  sharedPulse,
  sharedSentAt,
} from "./heartbeat-protocol.ts";
import { Renewer } from "./renewer.ts";

/** After this long without a turn of the main loop, its leases are no longer renewed. */
const maxSilenceMs = 5 * 60_000;

async function main(plan: HeartbeatPlan, port: NonNullable<typeof parentPort>): Promise<void> {
  const store = await openStore(plan);
  const claims = new ClaimTableReader();
  const tell = (report: HeartbeatReport): void => port.postMessage(report);
  const clock = systemClock;
  const silenceMs = (): number => clock.monotonic() - millis(Atomics.load(plan.shared, sharedPulse));

  const renewer = new Renewer({
    store,
    claimer: plan.claimer,
    leaseMs: plan.leaseMs,
    heartbeatMs: plan.heartbeatMs,
    clock,
    random: Math.random,
    held: () => claims.read(),
    mayRenew({ timeoutAtMs }) {
      const silent = silenceMs();
      if (silent > maxSilenceMs) return false;
      // A loop that is not blocked watches its timeouts itself; a blocked one cannot.
      return silent < plan.leaseMs || timeoutAtMs === null || clock.monotonic() < timeoutAtMs;
    },
    onRenewed: (claims, sentAtMs) => tell({ kind: "renewed", claims, sentAtMs }),
    onCovered: (sentAtMs) => void Atomics.store(plan.shared, sharedSentAt, micros(sentAtMs)),
    onStale: (claims) => tell({ kind: "stale", claims }),
    onCancel: (claims) => tell({ kind: "cancel", claims }),
    onError: (error) => tell({ kind: "error", error }),
  });

  port.on("message", async (message: HeartbeatMessage) => {
    if (message.kind === "sheet") {
      claims.add(message.sheet);
    } else {
      await renewer.stop();
      await store.close();
      tell({ kind: "stopped" });
    }
  });
  renewer.start();
  tell({ kind: "ready" });
}

async function openStore(plan: HeartbeatPlan): Promise<Store> {
  const module: { openStore(options: unknown, context: StoreContext): Promise<Store> } = await import(
    plan.address.module
  );
  return module.openStore(plan.address.options, {
    namespace: plan.namespace,
    clock: systemClock,
    log: consoleLogger,
  });
}

/** The main thread has warned of the store's experimental parts already. */
function warnOnce(): void {
  const printers = process.listeners("warning");
  process.removeAllListeners("warning");
  process.on("warning", (warning) => {
    if (warning.name !== "ExperimentalWarning") for (const print of printers) print(warning);
  });
}

if (parentPort !== null) {
  warnOnce();
  await main(workerData as HeartbeatPlan, parentPort);
}
