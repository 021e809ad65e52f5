import type { ClaimRef } from "../store/claims.ts";
import type { Renewal } from "./renewer.ts";

/** Ids have at most 255 characters (names.ts). */
const idLength = 255;
/** A row, in numbers of each kind: first its version and the length of its id, then token and timeout, then the id. */
const rowBytes = 24 + 2 * idLength + 2;
const rowsInSheet = 256;

/** A piece of memory that both threads see, as long as it needs to be for its rows. */
export type Sheet = SharedArrayBuffer;

class Rows {
  readonly #integers: Int32Array;
  readonly #numbers: Float64Array;
  readonly #characters: Uint16Array;

  constructor(sheet: Sheet) {
    this.#integers = new Int32Array(sheet);
    this.#numbers = new Float64Array(sheet);
    this.#characters = new Uint16Array(sheet);
  }

  /** A version that is odd says that the row is being written; it rises by two with each claim, and 0 is no claim's. */
  write(row: number, version: number, { id, token, timeoutAtMs }: Renewal): void {
    const start = row * rowBytes;
    // An exchange, unlike a store, lets nothing that follows it happen before it.
    Atomics.exchange(this.#integers, start / 4, version + 1);
    this.#integers[start / 4 + 1] = id.length;
    this.#numbers[start / 8 + 1] = token;
    this.#numbers[start / 8 + 2] = timeoutAtMs ?? Number.NaN;
    for (let at = 0; at < id.length; at += 1) this.#characters[start / 2 + 12 + at] = id.charCodeAt(at);
    Atomics.store(this.#integers, start / 4, version + 2);
  }

  clear(row: number): void {
    Atomics.store(this.#integers, (row * rowBytes) / 4, 0);
  }

  /** Undefined if there is none, or where it changes at this moment: then it came, or went, after the read began. */
  read(row: number): Renewal | undefined {
    const start = row * rowBytes;
    const version = Atomics.load(this.#integers, start / 4);
    if (version === 0 || version % 2 === 1) return undefined;
    const length = this.#integers[start / 4 + 1] ?? 0;
    const characters = this.#characters.slice(start / 2 + 12, start / 2 + 12 + length);
    const token = this.#numbers[start / 8 + 1] ?? 0;
    const timeoutAtMs = this.#numbers[start / 8 + 2] ?? Number.NaN;
    // An addition, unlike a load, lets nothing that precedes it happen after it.
    if (Atomics.add(this.#integers, start / 4, 0) !== version) return undefined;
    return {
      id: String.fromCharCode(...characters),
      token,
      timeoutAtMs: Number.isNaN(timeoutAtMs) ? null : timeoutAtMs,
    };
  }
}

/**
 * The claims that the main loop holds, in memory that the heartbeat's thread reads by itself when it renews them: that
 * a claim comes and goes costs no message, and a main loop that is blocked keeps nothing from the thread.
 */
export class ClaimTable {
  readonly #onSheet: (sheet: Sheet) => void;
  readonly #sheets: Rows[] = [];
  readonly #places = new Map<string, { readonly token: number; readonly place: number }>();
  readonly #free: number[] = [];
  #version = 0;

  /** @param onSheet is given each piece of memory before anything is written to it. */
  constructor(onSheet: (sheet: Sheet) => void) {
    this.#onSheet = onSheet;
  }

  /** In place of an earlier claim of the same job. */
  put(renewal: Renewal): void {
    const place = this.#places.get(renewal.id)?.place ?? this.#free.pop() ?? this.#grow();
    this.#places.set(renewal.id, { token: renewal.token, place });
    this.#version = (this.#version + 2) % 2 ** 30;
    this.#sheets[Math.floor(place / rowsInSheet)]?.write(place % rowsInSheet, this.#version, renewal);
  }

  remove({ id, token }: ClaimRef): void {
    const known = this.#places.get(id);
    if (known?.token !== token) return;
    this.#places.delete(id);
    this.#sheets[Math.floor(known.place / rowsInSheet)]?.clear(known.place % rowsInSheet);
    this.#free.push(known.place);
  }

  /** Returns a free place. */
  #grow(): number {
    const sheet = new SharedArrayBuffer(rowsInSheet * rowBytes);
    this.#onSheet(sheet);
    const first = this.#sheets.length * rowsInSheet;
    this.#sheets.push(new Rows(sheet));
    for (let place = first + rowsInSheet - 1; place > first; place -= 1) this.#free.push(place);
    return first;
  }
}

/** The other thread's side of a {@link ClaimTable}. */
export class ClaimTableReader {
  readonly #sheets: Rows[] = [];

  add(sheet: Sheet): void {
    this.#sheets.push(new Rows(sheet));
  }

  /** Every claim that was there when it began and is there when it ends. */
  read(): Renewal[] {
    return this.#sheets.flatMap((rows) =>
      Array.from({ length: rowsInSheet }, (_, row) => rows.read(row)).filter((claim) => claim !== undefined),
    );
  }
}
