import { type Clock, sleep } from "../clock.ts";
import { UnrecoverableError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { textOf } from "../message/publish-result.ts";
import type { Route, Transport } from "../message/transport.ts";
import { reconnectDelayMs } from "../runtime/transient.ts";
import { deadLetterOf, type LetterForm } from "./dead-letter.ts";
import type { ConsumeOptions, DeadMessage } from "./options.ts";

export interface BurialParts {
  readonly deadLetter: Route | null;
  readonly onDead: ConsumeOptions["onDead"] | null;
  readonly clock: Clock;
  readonly log: Logger;
}

/** `refused`: it is not accepted, and never will be. `stopped`: the consumer stopped before it was accepted. */
export type BurialEnd = "buried" | "refused" | "stopped";

interface Trouble {
  readonly error: unknown;
  /** What is at fault: the message, the place, or something unknown. */
  readonly with: "message" | "place" | "unknown";
}

const longestWaitMs = 30_000;
/** After this long, a failure that repeats for an unknown reason is blamed on the message. */
const patienceMs = 10 * 60_000;

/** Sends dead messages to where they are kept. */
export class Burial {
  readonly #parts: BurialParts;
  #transport: Promise<Transport> | null = null;
  #lastBuriedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: BurialParts) {
    this.#parts = parts;
  }

  /**
   * Waits for a place that is down: nothing is at fault here, and nothing is lost. A message that the place refuses for good is offered
   * once more in its short form, and then counts as refused: waiting would take up a slot forever.
   */
  async bury(dead: DeadMessage, stopped: AbortSignal): Promise<BurialEnd> {
    const { clock, log, deadLetter } = this.#parts;
    const beganAt = clock.monotonic();
    let form: LetterForm = "whole";
    for (let attempt = 1; ; attempt++) {
      const trouble = await this.#attempt(dead, form);
      if (trouble === null) {
        this.#lastBuriedAt = clock.monotonic();
        return "buried";
      }
      const { error } = trouble;
      const { position, facts } = dead;
      if (trouble.with === "message" && form === "whole" && deadLetter !== null) {
        log.warn(
          { error, position, reason: dead.error },
          "a dead message was refused; its short form is sent",
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
      log.error({ error, position }, "a dead message could not be dead-lettered; it is retried");
      await sleep(
        clock,
        Math.min(reconnectDelayMs(attempt, Math.random()) * attempt, longestWaitMs),
        stopped,
      );
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
    // If others get through in the meantime, the place is not at fault.
    return trouble.with === "unknown" || this.#lastBuriedAt >= beganAt;
  }

  async #attempt(dead: DeadMessage, form: LetterForm): Promise<Trouble | null> {
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
