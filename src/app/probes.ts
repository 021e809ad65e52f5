import type { Connection } from "../client/connection.ts";
import { type Clock, sleep } from "../clock.ts";
import { EscapementError } from "../errors.ts";
import type { RelayStatus } from "../relay/relay.ts";
import type { Settings } from "../settings.ts";
import { notStarted, type Probe, type ProbeCheck, probeOf } from "../telemetry/probe.ts";
import type { ClaimerStatus } from "../worker/claimer.ts";
import type { Life } from "./life.ts";

interface ProbesParts {
  readonly settings: Settings;
  readonly connection: Connection;
  readonly clock: Clock;
  readonly life: Life;
}

/** Slower than this, a store is of no use. */
const storeMs = 5_000;
/** More frequent requests share an answer, so probing cannot load the store. */
const sameAnswerMs = 1_000;
/** A loop that runs every poll may be late by this much, on a machine that has too much to do. */
const lateMs = 15_000;

/** Says whether this process is alive, and whether it can work: for orchestrators, which restart the one and leave the other alone. */
export class Probes {
  readonly #parts: ProbesParts;
  #asking: { readonly answer: Promise<ProbeCheck>; readonly atMs: number } | null = null;

  constructor(settings: Settings, connection: Connection, clock: Clock, life: Life) {
    this.#parts = { settings, connection, clock, life };
  }

  /** The loop runs, the store answers. */
  async liveness(): Promise<Probe> {
    return probeOf([this.#loop(), await this.#store()]);
  }

  /** Claims are being made, partitions are held: or why not. It asks neither store nor broker. */
  readiness(): Probe {
    const { life } = this.#parts;
    const { node } = life;
    const app = (ok: boolean, detail: string): Probe => probeOf([{ name: "app", ok, detail }]);
    if (life.isStopping) return app(false, "it is stopping");
    if (node === null || !node.isStarted) return app(false, notStarted);
    const { claims, relayStatus } = node;
    const checks = [
      ...(claims === null ? [] : [this.#claims(claims)]),
      ...(relayStatus === null ? [] : [relayCheck(relayStatus)]),
    ];
    return checks.length === 0 ? app(true, "it is started") : probeOf(checks);
  }

  #loop(): ProbeCheck {
    const { clock, settings, life } = this.#parts;
    const claims = life.node?.claims ?? null;
    // An answer at all shows that the event loop runs.
    if (claims === null || claims.turnedAtMs === null)
      return { name: "loop", ok: true, detail: "the event loop turns" };
    const sinceMs = clock.monotonic() - claims.turnedAtMs;
    return {
      name: "loop",
      ok: sinceMs <= settings.pollMs + lateMs,
      detail: `the claim loop last ran ${seconds(sinceMs)} ago`,
    };
  }

  #store(): Promise<ProbeCheck> {
    const nowMs = this.#parts.clock.monotonic();
    if (this.#asking === null || nowMs - this.#asking.atMs >= sameAnswerMs)
      this.#asking = { answer: this.#ask(), atMs: nowMs };
    return this.#asking.answer;
  }

  async #ask(): Promise<ProbeCheck> {
    const { clock, connection, life } = this.#parts;
    if (life.isStopping)
      return { name: "store", ok: true, detail: "it is not asked while the app is stopping" };
    const over = new AbortController();
    const ask = async (): Promise<ProbeCheck> => {
      await (await connection.store()).queues();
      return { name: "store", ok: true, detail: "it answers" };
    };
    const wait = async (): Promise<ProbeCheck> => {
      await sleep(clock, storeMs, over.signal);
      return { name: "store", ok: false, detail: `it has not answered for ${seconds(storeMs)}` };
    };
    try {
      return await Promise.race([ask(), wait()]);
    } catch (error) {
      return { name: "store", ok: false, detail: `it does not answer: ${codeOf(error)}` };
    } finally {
      over.abort();
    }
  }

  #claims({ claimedAtMs, failures, error, names, isFull }: ClaimerStatus): ProbeCheck {
    const { clock, settings } = this.#parts;
    const say = (ok: boolean, detail: string): ProbeCheck => ({ name: "claims", ok, detail });
    if (names === 0) return say(true, "no definition here has a handler, so there is nothing to claim");
    if (failures > 0)
      return say(
        false,
        `the store failed the last ${failures} claim${failures === 1 ? "" : "s"}: ${codeOf(error)}`,
      );
    if (isFull) return say(true, `all handler slots (${settings.concurrency}) are busy`);
    if (claimedAtMs === null) return say(false, "no claim has been answered yet");
    const sinceMs = clock.monotonic() - claimedAtMs;
    return say(sinceMs <= settings.pollMs + lateMs, `the last claim was answered ${seconds(sinceMs)} ago`);
  }
}

function relayCheck({ held, partitions, relays }: RelayStatus): ProbeCheck {
  const detail = `it holds ${held} of ${partitions} partitions, which ${relays} relays share`;
  // With more relays than partitions some are in reserve.
  return { name: "relay", ok: held > 0 || (partitions > 0 && relays > partitions), detail };
}

/** Driver messages can contain addresses and user names, which a health check should not reveal. */
function codeOf(error: unknown): string {
  return error instanceof EscapementError ? error.code : "an unknown error; see the log";
}

function seconds(ms: number): string {
  return `${(Math.max(0, ms) / 1_000).toFixed(1)} s`;
}
