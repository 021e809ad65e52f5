import { EscapementError } from "../errors.ts";
import { printableJson } from "../runtime/printable.ts";
import type { Patience } from "../runtime/runtime.ts";
import { remark } from "./output.ts";
import { short } from "./times.ts";

/** How long a command goes on while its store does not answer. */
export const patienceMs = 60_000;

/** Called once for each distinct error. */
export type ShowTrouble = (error: unknown, leftMs: number) => void;

/** The same for all calls of a command, which may run at once and inside one another: one line for each error, and one end. */
export class CommandPatience implements Patience {
  readonly ms: number;
  readonly #show: ShowTrouble;
  readonly #shown = new Set<string>();
  #isOver = false;

  constructor(ms: number, show: ShowTrouble) {
    this.ms = ms;
    this.#show = show;
  }

  goesOn(error: unknown, forMs: number): boolean {
    const leftMs = this.ms - forMs;
    if (this.#isOver || leftMs <= 0) {
      this.#isOver = true;
      return false;
    }
    const text = messageOf(error);
    if (!this.#shown.has(text)) this.#show(error, leftMs);
    this.#shown.add(text);
    return true;
  }
}

/** A store that is away for a moment. */
export function troubleOf(error: unknown): string {
  return `the store does not answer: ${messageOf(error)}`;
}

/** A line on standard error: for a person, or of JSON. */
export function remarkTrouble(json: boolean | undefined): ShowTrouble {
  return (error, leftMs) => {
    if (json !== true)
      return remark(
        json,
        `${troubleOf(error)}; trying again for ${short(Math.ceil(leftMs / 1_000) * 1_000)}`,
      );
    const code = error instanceof EscapementError ? error.code : null;
    const retrying = { code, message: messageOf(error), forMs: Math.round(leftMs) };
    process.stderr.write(`${printableJson({ retrying })}\n`);
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
