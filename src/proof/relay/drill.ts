import { systemClock } from "../../clock.ts";
import { EscapementError } from "../../errors.ts";
import type { MessageFacts } from "../../message/message.ts";
import type { ClaimRef } from "../../store/claims.ts";
import type { CheckpointParams, CheckpointResult } from "../../store/partitions.ts";
import type { Store } from "../../store/store.ts";
import { Chance } from "../../testing/chance.ts";
import { override } from "../../testing/override.ts";
import type { NodeLog } from "../node-log.ts";

/**
 * What the drill does to a message. `refuse`: it is not sent. `drop`: it is not sent, and nobody knows. `doubt`: it is sent, and nobody
 * knows.
 */
export type Strike = "refuse" | "drop" | "doubt";

/** How often, out of a hundred. */
const strikes: readonly (readonly [Strike, number])[] = [
  ["refuse", 8],
  ["drop", 3],
  ["doubt", 4],
];
/** Later attempts are left alone: each waits twice as long as the one before. */
const mostTries = 3;
const failedRollbacks = 0.15;
const failedNamings = 0.02;
/** A checkpoint that fails holds up its whole partition, so this must stay rare. */
const betweenFailedRollbacksMs = 3_000;

/** Makes publishes fail on purpose, and the writes before and after them, by its seed; and writes down each time. */
export class PublishDrill {
  readonly #chance: Chance;
  readonly #log: NodeLog;
  /** Whose rollback must not be written: at all, or so that anybody hears of it. */
  #doomed: { readonly ref: string; readonly done: boolean; told: boolean } | null = null;
  #nextAtMs = 0;

  constructor(seed: number, node: string, log: NodeLog) {
    this.#chance = new Chance(seed, `drill of ${node}`);
    this.#log = log;
  }

  /** What happens to a message that is handed to the transport. */
  strike({ id, token, delivery }: MessageFacts): Strike | null {
    const ref = refOf({ id, token });
    // It is published again, so that its rollback was given up.
    if (this.#doomed?.ref === ref) this.#doomed = null;
    if (token > mostTries) return null;
    const struck = this.#draw();
    const nowMs = systemClock.monotonic();
    if (struck !== "refuse" || delivery === "at-most-once" || nowMs < this.#nextAtMs) return struck;
    if (this.#doomed === null && this.#chance.happens(failedRollbacks)) {
      this.#nextAtMs = nowMs + betweenFailedRollbacksMs;
      this.#doomed = { ref, done: this.#chance.happens(0.3), told: false };
    }
    return struck;
  }

  /** The store, with checkpoints that fail. */
  around(store: Store): Store {
    return override(store, { checkpoint: (params) => this.#checkpoint(store, params) });
  }

  #draw(): Strike | null {
    let drawn = this.#chance.integer(1, 100);
    for (const [strike, share] of strikes) {
      drawn -= share;
      if (drawn <= 0) return strike;
    }
    return null;
  }

  async #checkpoint(store: Store, params: CheckpointParams): Promise<CheckpointResult> {
    const doomed = this.#doomed;
    const rollback = params.settled.find(
      (one) => one.outcome.kind === "rollback" && refOf(one) === doomed?.ref,
    );
    if (doomed !== null && rollback !== undefined) {
      if (!doomed.told) this.#tell("rollback_write", [rollback], doomed.done);
      doomed.told = true;
      if (doomed.done) this.#doomed = null;
      return this.#fail(store, params, doomed.done);
    }
    if (params.name.length === 0 || !this.#chance.happens(failedNamings)) return store.checkpoint(params);
    const done = this.#chance.happens(0.5);
    this.#tell(
      "dispatched_write",
      params.name.map(({ id }) => ({ id, token: 0 })),
      done,
    );
    return this.#fail(store, params, done);
  }

  async #fail(store: Store, params: CheckpointParams, done: boolean): Promise<never> {
    if (done) await store.checkpoint(params);
    throw new EscapementError("store-unavailable", "the drill wants it so");
  }

  #tell(phase: "dispatched_write" | "rollback_write", claims: readonly ClaimRef[], done: boolean): void {
    const jobs = claims.map(({ id, token }) => ({ job: id, token }));
    this.#log.relay({ what: "drill", phase, jobs, done });
  }
}

function refOf({ id, token }: ClaimRef): string {
  return `${id} ${token}`;
}
