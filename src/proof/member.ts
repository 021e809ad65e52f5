import { flushCompileCache } from "node:module";
import { sleep, systemClock } from "../clock.ts";
import { EscapementError } from "../errors.ts";
import type { CrashPoints } from "./crash-points.ts";
import type { NodeLog } from "./node-log.ts";
import type { NodeOrder, NodeReport } from "./node-plan.ts";
import type { SkewedRuntime } from "./skewed-clock.ts";
import { stallMs } from "./stall.ts";

/** How often the process looks whether it was kept from running. */
const lookEveryMs = 50;
const startAgainMs = 200;

export interface MemberParts {
  readonly log: NodeLog;
  readonly leaseMs: number;
  readonly crashes: CrashPoints;
  /** Null: its clock is the machine's. */
  readonly skewed: SkewedRuntime | null;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** What every process of a run does beside its work: it starts, does as it is told, and notes when it was kept from running. */
export async function serve(parts: MemberParts): Promise<void> {
  let lookedAtMs = systemClock.monotonic();
  const look = (): void => {
    const nowMs = systemClock.monotonic();
    // A machine that is too busy is a fault like any other, if nobody's.
    if (nowMs - lookedAtMs > lookEveryMs + stallMs(parts.leaseMs))
      parts.log.fault("stall", lookedAtMs, nowMs, "the process could not run");
    lookedAtMs = nowMs;
  };
  const obey = async (order: NodeOrder): Promise<void> => {
    switch (order.kind) {
      case "block": {
        const fromMs = systemClock.monotonic();
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, order.ms);
        lookedAtMs = systemClock.monotonic();
        return tell({ kind: "blocked", fromMs, untilMs: lookedAtMs });
      }
      case "clock":
        if (parts.skewed !== null) parts.skewed.offsetMs = order.offsetMs;
        return;
      case "crash":
        return parts.crashes.arm(order.point);
      case "stop":
        await parts.stop();
        process.exit(0);
    }
  };
  process.on("message", (order: NodeOrder) => void obey(order));
  process.once("disconnect", () => process.exit(0));
  await startAnew(() => parts.start());
  lookedAtMs = systemClock.monotonic();
  setInterval(look, lookEveryMs);
  tell({ kind: "ready" });
  // A process that is killed would leave nothing to the next one.
  flushCompileCache();
}

/** A store that does not answer fails the start; whoever runs a service starts it again. Every other error ends the process, and the run. */
async function startAnew(start: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof EscapementError) || error.code !== "store-unavailable") throw error;
      await sleep(systemClock, startAgainMs);
    }
  }
}

function tell(report: NodeReport): void {
  process.send?.(report);
}
