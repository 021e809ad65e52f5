import { faultOn } from "../attempts.ts";
import type { FaultWindow, History } from "../history.ts";
import { stallMs } from "../stall.ts";
import type { RelayEvidence } from "./evidence.ts";
import type { Publish } from "./publishes.ts";

/** How long after a disturbance clients may need to find back to a broker, and a cluster to elect a leader. */
const aftermathMs = 5_000;

/** Consumers have names of their own. */
function isOfConsumer({ node }: FaultWindow): boolean {
  return node?.startsWith("c") === true;
}

/** The faults of relays and of the ways from them. */
export function faultsOfRelays({ faults }: History): FaultWindow[] {
  return faults.filter((fault) => !isOfConsumer(fault));
}

/** Those that can cost a relay its partitions, or its word about them: what becomes of the broker costs it neither. */
export function faultsOfHolders(history: History): FaultWindow[] {
  return faultsOfRelays(history).filter(({ kind }) => kind !== "broker" && kind !== "broker-restart");
}

/** Those that a publish can feel: the way to the broker with the aftermath of what happened to it. */
export function faultsOfPublishes(history: History): FaultWindow[] {
  return faultsOfRelays(history).map((fault) =>
    fault.kind === "broker" || fault.kind === "both" || fault.kind === "broker-restart"
      ? { ...fault, untilMs: fault.untilMs + aftermathMs }
      : fault,
  );
}

/** When the drill held a partition up: it excuses nothing but being late. */
export function drillWindows({ lines, rules }: RelayEvidence): FaultWindow[] {
  return lines.flatMap((line) =>
    line.what === "drill"
      ? [
          {
            kind: "publish",
            node: line.node,
            fromMs: line.atMs,
            untilMs: line.atMs + (line.phase === "rollback_write" ? rules.dispatchTimeoutMs : 0) + 1_000,
            detail: line.phase,
          } as const,
        ]
      : [],
  );
}

/** Why a publish was not acknowledged: the drill, a fault, or a machine so busy that its time ran out, or that it took as long as a stall. */
export function isExplained({ rules }: History, faults: readonly FaultWindow[], publish: Publish): boolean {
  const { answer, node, claimedAtMs } = publish;
  if (answer === null) return false;
  return (
    answer.drilled || ranOut(rules, publish) || faultOn(faults, node, claimedAtMs, answer.atMs) !== undefined
  );
}

/** How many publishes nobody knew of, at the drill's will or for want of time: each may have left a copy, beside what faults cost. */
export function doubts({ rules }: History, publishes: Iterable<readonly Publish[]>): number {
  return [...publishes]
    .flat()
    .filter((one) => one.answer?.how === "ambiguous" && (one.answer.drilled || ranOut(rules, one))).length;
}

function ranOut({ leaseMs }: History["rules"], { answer, startAtMs, timeoutMs }: Publish): boolean {
  return answer !== null && answer.atMs - startAtMs >= Math.min(stallMs(leaseMs), timeoutMs);
}
