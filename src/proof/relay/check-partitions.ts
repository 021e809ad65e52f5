import { faultOn } from "../attempts.ts";
import type { FaultWindow } from "../history.ts";
import type { Violation } from "../violation.ts";
import type { GrantLine, NameLine, RelayEvidence } from "./evidence.ts";
import type { Publish } from "./publishes.ts";

/** How long after it was let go on a process may come to the line that it was about to write. */
const wakeMs = 250;

/** Who has lost a partition neither names nor publishes on it any more. */
export function checkPartitions(
  { lines }: RelayEvidence,
  publishes: ReadonlyMap<string, readonly Publish[]>,
  faults: readonly FaultWindow[],
): Violation[] {
  const grants = Map.groupBy(
    lines.filter((line) => line.what === "grant"),
    ({ partition }) => partition,
  );
  const successor = ({ partition, epoch }: NameLine, beforeMs: number): GrantLine | undefined =>
    grants.get(partition)?.find((grant) => grant.epoch > epoch && grant.atMs < beforeMs);
  const violation = (name: NameLine, what: string, next: GrantLine, atMs: number): Violation => {
    const detail = `${what} on ${name.node} under epoch ${name.epoch} of partition ${name.partition}, after epoch ${next.epoch} was granted to ${next.node}`;
    return { kind: "epoch", delivery: null, subject: name.job, detail, atMs };
  };
  const named = lines.flatMap((line) => {
    const next = line.what === "name" ? successor(line, line.sentAtMs) : undefined;
    // The store has refused it, whatever happened to its sender.
    return line.what !== "name" || next === undefined ? [] : [violation(line, "named", next, line.atMs)];
  });
  const published = [...publishes.values()].flat().flatMap(({ naming, node, startAtMs }) => {
    const next = naming === null ? undefined : successor(naming, startAtMs);
    if (naming === null || next === undefined) return [];
    // Stopped between the look at its lease and the next line.
    const heldUp = faultOn(
      faults.filter(({ kind, node: whose }) => whose === node && kind !== "kill"),
      node,
      startAtMs - wakeMs,
      startAtMs,
    );
    return heldUp === undefined ? [violation(naming, "published", next, startAtMs)] : [];
  });
  return [...named, ...published];
}
