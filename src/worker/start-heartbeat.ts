import { systemClock } from "../clock.ts";
import type { Emit } from "../events.ts";
import type { Logger } from "../log.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Settings } from "../settings.ts";
import type { Store } from "../store/store.ts";
import { type Heartbeat, loopHeartbeat, threadHeartbeat } from "./heartbeat.ts";
import type { RenewerParts } from "./renewer.ts";

export interface HeartbeatParts extends Pick<RenewerParts, "onRenewed" | "onStale" | "onCancel"> {
  readonly store: Store;
  readonly claimer: string;
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly emit: Emit;
  readonly log: Logger;
  /** The thread is gone; this one takes its place, and needs to know every claim. */
  onReplaced(heartbeat: Heartbeat): void;
}

/** In its own thread where the store can be reached from one, else in the main loop. */
export function startHeartbeat(parts: HeartbeatParts): Heartbeat {
  const { store, settings, runtime, log } = parts;
  const { address } = store;
  // A custom clock means a simulation, in which everything happens in one thread.
  if (runtime.clock !== systemClock || address === null) return inLoop(parts);
  const { namespace } = settings;
  const onGone = (): void => parts.onReplaced(inLoop(parts));
  return threadHeartbeat({ ...renewing(parts), address, namespace, log, onGone }) ?? inLoop(parts);
}

function inLoop(parts: HeartbeatParts): Heartbeat {
  const { store, runtime, log } = parts;
  // Expected of a store that only this process can reach; elsewhere the thread has failed.
  if (runtime.clock === systemClock)
    log[store.address === null ? "debug" : "warn"](
      {},
      "leases are renewed from the main loop: a handler that blocks it for longer than the lease loses its job",
    );
  return loopHeartbeat({ ...renewing(parts), store, random: runtime.random });
}

function renewing({ claimer, settings, runtime, emit, onRenewed, onStale, onCancel }: HeartbeatParts) {
  return {
    claimer,
    leaseMs: settings.leaseMs,
    heartbeatMs: settings.heartbeatMs,
    clock: runtime.clock,
    onRenewed,
    onStale,
    onCancel,
    onError: (error: unknown) => emit("error", { error, during: "renewing leases" }),
  } as const;
}
