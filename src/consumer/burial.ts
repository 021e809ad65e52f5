import { type Clock, sleep } from "../clock.ts";
import { recordError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { encodeHeader } from "../message.ts";
import { textOf } from "../publish-result.ts";
import { reconnectDelayMs } from "../transient.ts";
import type { Route, Transport } from "../transport.ts";
import type { ConsumeOptions, DeadMessage } from "./options.ts";

export interface BurialParts {
  readonly deadLetter: Route | null;
  readonly onDead: ConsumeOptions["onDead"] | null;
  readonly clock: Clock;
  readonly log: Logger;
}

const longestWaitMs = 30_000;
const mostErrorLength = 1_000;

/** Brings dead messages to where they are kept. */
export class Burial {
  readonly #parts: BurialParts;
  #transport: Promise<Transport> | null = null;

  constructor(parts: BurialParts) {
    this.#parts = parts;
  }

  /** Tries until it has worked; false when it was stopped before that. */
  async bury(dead: DeadMessage, stopped: AbortSignal): Promise<boolean> {
    const { clock, log } = this.#parts;
    for (let tries = 1; ; tries++) {
      try {
        await this.#try(dead);
        return true;
      } catch (error) {
        log.error({ error, id: dead.facts?.id }, "a dead message could not be put away; this is tried again");
      }
      await sleep(clock, Math.min(reconnectDelayMs(tries, Math.random()) * tries, longestWaitMs), stopped);
      if (stopped.aborted) return false;
    }
  }

  async close(): Promise<void> {
    const transport = await this.#transport?.catch(() => null);
    await transport?.close();
  }

  async #try(dead: DeadMessage): Promise<void> {
    const { deadLetter, onDead } = this.#parts;
    if (onDead) return onDead(dead);
    if (deadLetter === null) return;
    const transport = await this.#open(deadLetter);
    const { message, facts, error, tries } = dead;
    const [result] = await transport.publish(
      [
        {
          destination: deadLetter.destination,
          key: message.key,
          dedupeId: `${facts?.idempotencyKey ?? crypto.randomUUID()}:${facts?.redrives ?? 0}:dead`,
          headers: {
            ...carriable(message.headers),
            "escapement-error": encodeHeader(recordError(error).message.slice(0, mostErrorLength)),
            "escapement-tries": String(tries),
          },
          body: message.body,
        },
      ],
      { timeoutMs: deadLetter.dispatchTimeoutMs },
    );
    if (result !== undefined && result.kind !== "acknowledged")
      throw new Error(textOf(result.error), { cause: result.error });
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

/** The headers that any broker takes: those that are not ours may hold whatever the broker they came from let through. */
function carriable(headers: Readonly<Record<string, string>>): Record<string, string> {
  const named = Object.entries(headers).filter(([name]) => /^[\w!#$%&'*+.^`|~-]+$/.test(name));
  return Object.fromEntries(
    named.map(([name, value]) => [
      name,
      /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$|^$/.test(value) ? value : encodeHeader(value),
    ]),
  );
}
