import type { Logger } from "../log.ts";
import type { PublishResult, Transport } from "../transport.ts";
import { Gate } from "./gate.ts";

export interface OutletParts {
  readonly kind: string;
  readonly destination: string;
  readonly transport: Transport;
  readonly log: Logger;
}

/** The same trouble is not told more often. */
const tellEveryMs = 60_000;

/** A destination behind an open transport. Trouble with one is no trouble with the others, whose transport it may share. */
export class Outlet {
  readonly kind: string;
  readonly transport: Transport;
  readonly gate = new Gate();
  readonly #parts: OutletParts;
  #toldAtMs: number | null = null;

  constructor(parts: OutletParts) {
    this.#parts = parts;
    this.kind = parts.kind;
    this.transport = parts.transport;
  }

  /** @returns for how long it is left alone now; 0 when it is not. See {@link Gate.heard}. */
  heard(results: readonly PublishResult[], begunAtMs: number, nowMs: number): number {
    const closedMs = this.gate.heard(results, begunAtMs, nowMs);
    if (closedMs > 0) this.#tellTrouble(results, nowMs);
    else if (this.#toldAtMs !== null) this.#tellEnd();
    return closedMs;
  }

  #tellTrouble(results: readonly PublishResult[], nowMs: number): void {
    if (this.#toldAtMs !== null && nowMs - this.#toldAtMs < tellEveryMs) return;
    const failed = results.find((result) => result.kind !== "acknowledged");
    if (failed === undefined) return;
    this.#toldAtMs = nowMs;
    const { kind: transport, destination, log } = this.#parts;
    log.warn(
      { transport, destination, error: failed.error.message },
      "nothing gets through; jobs wait for it",
    );
  }

  #tellEnd(): void {
    this.#toldAtMs = null;
    const { kind: transport, destination, log } = this.#parts;
    log.info({ transport, destination }, "it gets through again");
  }
}
