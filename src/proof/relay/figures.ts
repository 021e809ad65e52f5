import type { DispatchPhase } from "../../events.ts";
import type { RelayEvidence } from "./evidence.ts";

/** What a run that published shows beside the figures of each guarantee. */
export interface RelayFigures {
  /** Messages that were handed to the broker. */
  readonly publishes: number;
  /** What the broker had in the end. */
  readonly copies: number;
  /** What consumers were handed, the broker's own redeliveries included. */
  readonly received: number;
  /** By what relays told of. */
  readonly rollbacks: { readonly refused: number; readonly ambiguous: number; readonly failed: number };
  /** How often the drill struck, by phase. */
  readonly drills: Readonly<Record<DispatchPhase, number>>;
  /** Partitions that changed hands. */
  readonly grants: number;
}

export function relayFigures({ lines, copies }: RelayEvidence): RelayFigures {
  const count = (what: string): number => lines.filter((line) => line.what === what).length;
  const retries = lines.filter((line) => line.what === "retry");
  const drills = lines.filter((line) => line.what === "drill");
  const failed = retries.filter(({ phase }) => phase === "publish");
  return {
    publishes: count("publish"),
    copies: copies.length,
    received: count("receive"),
    rollbacks: {
      refused: failed.filter(({ ambiguous }) => !ambiguous).length,
      ambiguous: failed.filter(({ ambiguous }) => ambiguous).length,
      failed: retries.filter(({ phase }) => phase === "rollback_write").length,
    },
    drills: {
      dispatched_write: drills.filter(({ phase }) => phase === "dispatched_write").length,
      publish: lines.filter((line) => line.what === "answer" && line.drilled).length,
      rollback_write: drills.filter(({ phase }) => phase === "rollback_write").length,
    },
    grants: count("grant"),
  };
}
