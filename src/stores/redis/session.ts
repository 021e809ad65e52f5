import type { Clock } from "../../clock.ts";
import { EscapementError } from "../../errors.ts";
import { slotOf } from "../../id.ts";
import { slotCount } from "../../store/partitions.ts";
import type { Link } from "./connection/link.ts";
import { runScript } from "./connection/scripts.ts";
import { Sequences } from "./connection/sequences.ts";

export interface SessionParts {
  readonly link: Link;
  readonly prefix: string;
  readonly namespace: string;
  /** How many Redis slots the namespace is spread over. */
  readonly slots: number;
  /** Null: the server's own. */
  readonly clock: Clock | null;
}

type Argument = string | Buffer | number;

/** A namespace on its servers: where its keys are, and how scripts run there. */
export class Session {
  readonly link: Link;
  readonly slots: number;
  readonly sequences = new Sequences();
  /** Redis slots with a due job that only a direct claim may take. */
  readonly heldUp = new Set<number>();
  readonly #tag: string;
  readonly #clock: Clock | null;
  #closed = false;

  constructor({ link, prefix, namespace, slots, clock }: SessionParts) {
    this.link = link;
    this.slots = slots;
    this.#clock = clock;
    // Braces and colons in the name would shift where the hash tag ends, or make two names collide.
    this.#tag = `${prefix}:${namespace.replace(/[%{}:]/g, encodeURIComponent)}`;
  }

  /** Every key of a Redis slot starts with this. */
  keyPrefix(index: number): string {
    return `{${this.#tag}:${index}}:`;
  }

  get channels(): string[] {
    return this.everySlot.map((index) => `${this.keyPrefix(index)}notices`);
  }

  get everySlot(): number[] {
    return Array.from({ length: this.slots }, (_, index) => index);
  }

  /** The Redis slot of a job: a range of the namespace's own slots, so a partition can fit within one. */
  placeOf(id: string): number {
    return this.slots === 1 ? 0 : this.placeOfSlot(slotOf(id));
  }

  placeOfSlot(slot: number): number {
    return Math.floor(((slot + 1) * this.slots - 1) / slotCount);
  }

  /** The Redis slot of a schedule, which is that of all its occurrences' jobs. */
  placeOfSchedule(key: string): number {
    return this.placeOf(`{${key}}`);
  }

  run(script: string, index: number, ...args: Argument[]): Promise<unknown> {
    if (this.#closed) {
      return Promise.reject(new EscapementError("stopped", "the Redis store was closed; open it again"));
    }
    const now = this.#clock === null ? "" : Math.trunc(this.#clock.now());
    return runScript(this.link, script, `${this.keyPrefix(index)}meta`, [now, ...args]);
  }

  /** A field of the namespace's own record; empty if there is none. */
  async meta(field: string): Promise<string> {
    return String(bufferOf(await this.link.call("HGET", [`${this.keyPrefix(0)}meta`, field])));
  }

  /** Runs a script that returns one string. */
  async text(script: string, index: number, ...args: Argument[]): Promise<Buffer> {
    return bufferOf(await this.run(script, index, ...args));
  }

  /** Runs a script that returns a list of strings. */
  async list(script: string, index: number, ...args: Argument[]): Promise<Buffer[]> {
    const answer = await this.run(script, index, ...args);
    return Array.isArray(answer) ? answer.map(bufferOf) : [];
  }

  /** Runs a script that returns a list of numbers. */
  async numbers(script: string, index: number, ...args: Argument[]): Promise<number[]> {
    const answer = await this.run(script, index, ...args);
    return Array.isArray(answer) ? answer.map(Number) : [Number(answer)];
  }

  close(): void {
    this.#closed = true;
  }
}

export function bufferOf(value: unknown): Buffer {
  if (Buffer.isBuffer(value)) return value;
  return Buffer.from(value === null || value === undefined ? "" : String(value));
}

/** Keys and values in turn, as pairs. */
export function pairsOf(list: readonly Buffer[]): [string, Buffer][] {
  const pairs: [string, Buffer][] = [];
  for (let index = 0; index + 1 < list.length; index += 2) {
    pairs.push([String(list[index]), list[index + 1] ?? Buffer.alloc(0)]);
  }
  return pairs;
}

/** Each Redis slot's part of a batch, with the positions of its items in the whole. */
function bySlot<T>(
  items: readonly T[],
  placeOf: (item: T) => number,
): Map<number, { index: number; item: T }[]> {
  const parts = new Map<number, { index: number; item: T }[]>();
  for (const [index, item] of items.entries()) {
    const place = placeOf(item);
    const part = parts.get(place) ?? [];
    parts.set(place, part);
    part.push({ index, item });
  }
  return parts;
}

/** Processes a batch slot by slot, all at once, and returns the answers in the order of the batch. */
export async function spread<T, R>(
  session: Session,
  items: readonly T[],
  placeOf: (item: T) => number,
  work: (items: readonly T[], index: number) => Promise<readonly R[]>,
): Promise<R[]> {
  if (items.length === 0) return [];
  if (session.slots === 1) return [...(await work(items, 0))];
  const answers: R[] = new Array(items.length);
  const parts = [...bySlot(items, placeOf)];
  await Promise.all(
    parts.map(async ([place, part]) => {
      const own = await work(
        part.map(({ item }) => item),
        place,
      );
      for (const [n, { index }] of part.entries()) answers[index] = own[n] as R;
    }),
  );
  return answers;
}
