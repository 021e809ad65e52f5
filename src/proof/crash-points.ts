import type { Store } from "../store/store.ts";
import { override } from "../testing/override.ts";

/** Where a node can be told to die. */
export const crashPoints = [
  "after claim",
  "before handler",
  "after handler",
  "before finish",
  "after finish",
  "in the middle of a fire",
  "in the middle of a transaction",
] as const;

/** Where a node with a relay can be told to die. */
export const relayCrashPoints = [
  "after naming",
  "before publish",
  "in the middle of a publish",
  "after publish",
  "before checkpoint",
  "in the middle of a checkpoint",
  "after checkpoint",
  "in the middle of a fire",
] as const;

export type CrashPoint = (typeof crashPoints)[number] | (typeof relayCrashPoints)[number];

/** Dies when it comes to the point it was told, as if by `kill -9`. */
export class CrashPoints {
  #armed: CrashPoint | null = null;
  readonly #lastWords: (point: CrashPoint) => void;

  /** @param lastWords written down before the end. */
  constructor(lastWords: (point: CrashPoint) => void) {
    this.#lastWords = lastWords;
  }

  arm(point: CrashPoint): void {
    this.#armed = point;
  }

  pass(point: CrashPoint): void {
    if (this.#armed !== point) return;
    this.#lastWords(point);
    process.kill(process.pid, "SIGKILL");
    // The signal is on its way; nothing more may happen until it is here.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000);
  }

  /** The store, with the points of its verbs. */
  around(store: Store): Store {
    return override(store, {
      step: async (params) => {
        if (params.finishes.length > 0) this.pass("before finish");
        const result = await store.step(params);
        if (params.finishes.length > 0) this.pass("after finish");
        if (result.claimed.jobs.length > 0) this.pass("after claim");
        return result;
      },
      finish: async (params) => {
        this.pass("before finish");
        const result = await store.finish(params);
        this.pass("after finish");
        return result;
      },
      checkpoint: async (params) => {
        if (params.settled.length > 0) this.pass("before checkpoint");
        const written = store.checkpoint(params);
        setImmediate(() => this.pass("in the middle of a checkpoint"));
        const result = await written;
        if (params.settled.length > 0) this.pass("after checkpoint");
        if (result.named.length > 0) this.pass("after naming");
        return result;
      },
      fire: async (params) => {
        const result = store.fire(params);
        // Sent, and not answered.
        setImmediate(() => this.pass("in the middle of a fire"));
        return result;
      },
    });
  }
}
