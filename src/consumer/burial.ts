import { type Clock, sleep } from "../clock.ts";
import { UnrecoverableError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { textOf } from "../publish-result.ts";
import { reconnectDelayMs } from "../transient.ts";
import type { Route, Transport } from "../transport.ts";
import { deadLetterOf, type LetterForm } from "./dead-letter.ts";
import type { ConsumeOptions, DeadMessage } from "./options.ts";

export interface BurialParts {
  readonly deadLetter: Route | null;
  readonly onDead: ConsumeOptions["onDead"] | null;
  readonly clock: Clock;
  readonly log: Logger;
}

/** `refused`: nobody takes it, and nobody will. `stopped`: the consumer stopped before anybody did. */
export type BurialEnd = "buried" | "refused" | "stopped";

interface Trouble {
  readonly error: unknown;
  /** Whether the message, the place, or nobody knows what, is to blame. */
  readonly with: "message" | "place" | "unknown";
}

const longestWaitMs = 30_000;
/** After this long, what fails again and again for no reason that is known is taken to be the message's fault. */
const patienceMs = 10 * 60_000;

/** Brings dead messages to where they are kept. */
export class Burial {
  readonly #parts: BurialParts;
  #transport: Promise<Transport> | null = null;
  #lastBuriedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: BurialParts) {
    this.#parts = parts;
  }

  /**
   * A place that is away is waited for: that is nobody's fault here, and nothing is lost. A message that the place refuses for good is offered
   * once more without what can be done without, and then it is refused: waiting would take up a slot for ever.
   */
  async bury(dead: DeadMessage, stopped: AbortSignal): Promise<BurialEnd> {
    const { clock, log, deadLetter } = this.#parts;
    const beganAt = clock.monotonic();
    let form: LetterForm = "whole";
    for (let tries = 1; ; tries++) {
      const trouble = await this.#try(dead, form);
      if (trouble === null) {
        this.#lastBuriedAt = clock.monotonic();
        return "buried";
      }
      const { error } = trouble;
      const { position, facts } = dead;
      if (trouble.with === "message" && form === "whole" && deadLetter !== null) {
        log.warn(
          { error, position, reason: dead.error },
          "a dead message was refused; it is sent in a short form",
        );
        form = "bare";
        continue;
      }
      if (this.#isRefused(trouble, beganAt)) {
        log.error(
          { error, position, id: facts?.id, name: facts?.name },
          "a dead message was refused for good",
        );
        return "refused";
      }
      log.error({ error, position }, "a dead message could not be put away; this is tried again");
      await sleep(clock, Math.min(reconnectDelayMs(tries, Math.random()) * tries, longestWaitMs), stopped);
      if (stopped.aborted) return "stopped";
    }
  }

  async close(): Promise<void> {
    const transport = await this.#transport?.catch(() => null);
    await transport?.close();
  }

  #isRefused(trouble: Trouble, beganAt: number): boolean {
    if (trouble.with === "message") return true;
    if (this.#parts.clock.monotonic() - beganAt < patienceMs) return false;
    // Where others get through meanwhile, it is not the place.
    return trouble.with === "unknown" || this.#lastBuriedAt >= beganAt;
  }

  async #try(dead: DeadMessage, form: LetterForm): Promise<Trouble | null> {
    const { deadLetter, onDead } = this.#parts;
    try {
      await onDead?.(dead);
    } catch (error) {
      return { error, with: error instanceof UnrecoverableError ? "message" : "unknown" };
    }
    return deadLetter === null ? null : this.#publish(dead, deadLetter, form);
  }

  async #publish(dead: DeadMessage, route: Route, form: LetterForm): Promise<Trouble | null> {
    try {
      const transport = await this.#open(route);
      const letter = deadLetterOf(dead, route.destination, form);
      const [result] = await transport.publish([letter], { timeoutMs: route.dispatchTimeoutMs });
      if (result === undefined || result.kind === "acknowledged") return null;
      const error = new Error(textOf(result.error), { cause: result.error });
      if (result.kind === "ambiguous") return { error, with: "unknown" };
      return { error, with: result.permanent ? "message" : "place" };
    } catch (error) {
      return { error, with: "place" };
    }
  }

  #open(route: Route): Promise<Transport> {
    const { clock, log } = this.#parts;
    this.#transport ??= route.transport.open({ clock, log }).catch((error: unknown) => {
      this.#transport = null;
      throw error;
    });
    return this.#transport;
  }
}
