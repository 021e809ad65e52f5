import { systemClock } from "../../clock.ts";
import type { CheckpointParams, CheckpointResult } from "../../store/partitions.ts";
import type { Store } from "../../store/store.ts";
import { override } from "../../testing/override.ts";
import type { NodeLog } from "../node-log.ts";

/** Writes down what the store lets a relay do: which partitions it holds, which jobs it may publish, and which ends were written. */
export class NamingWatch {
  readonly #log: NodeLog;
  /** When each job was first asked for whose answer is owed. */
  readonly #askedAtMs = new Map<string, number>();

  constructor(log: NodeLog) {
    this.#log = log;
  }

  around(store: Store): Store {
    return override(store, {
      acquirePartitions: async (params) => {
        const sentAtMs = systemClock.monotonic();
        const grants = await store.acquirePartitions(params);
        for (const { partition, epoch, named } of grants) {
          this.#log.relay({ what: "grant", partition, epoch });
          for (const { id: job, token } of named) {
            const sent = { sentAtMs, askedAtMs: sentAtMs };
            this.#log.relay({ what: "name", job, token, partition, epoch, ...sent });
          }
        }
        return grants;
      },
      checkpoint: async (params) => {
        const sentAtMs = systemClock.monotonic();
        for (const { id } of params.name) if (!this.#askedAtMs.has(id)) this.#askedAtMs.set(id, sentAtMs);
        const result = await store.checkpoint(params);
        this.#note(params, result, sentAtMs);
        return result;
      },
    });
  }

  #note(params: CheckpointParams, result: CheckpointResult, sentAtMs: number): void {
    const { partition, epoch } = params;
    for (const [index, { id: job, token, outcome }] of params.settled.entries()) {
      const written = (result.finished[index]?.outcome ?? "stale") !== "stale";
      this.#log.relay({ what: "settle", job, token, outcome: outcome.kind, written });
    }
    for (const { id: job, token } of result.named) {
      const askedAtMs = this.#askedAtMs.get(job) ?? sentAtMs;
      this.#log.relay({ what: "name", job, token, partition, epoch, sentAtMs, askedAtMs });
    }
    for (const { id } of params.name) this.#askedAtMs.delete(id);
  }
}
