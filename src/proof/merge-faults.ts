import type { FaultWindow } from "./history.ts";

/** Puts together what was done and what the nodes found: one that was stopped on purpose also finds that it could not run. */
export function mergeFaults(done: readonly FaultWindow[], noted: readonly FaultWindow[]): FaultWindow[] {
  const explained = (stall: FaultWindow): boolean =>
    done.some(
      ({ node, fromMs, untilMs }) =>
        (node === null || node === stall.node) && fromMs <= stall.untilMs && untilMs >= stall.fromMs,
    );
  const own = noted.filter((fault) => fault.kind !== "stall" || !explained(fault));
  // A node that came to its point while it was being killed died once.
  const died = new Set(own.filter(({ kind }) => kind === "kill").map(({ node }) => node));
  const others = done.filter(({ kind, node }) => kind !== "kill" || !died.has(node));
  return [...others, ...own].toSorted((a, b) => a.fromMs - b.fromMs);
}
