import { instantOf } from "../../../unreadable.ts";

/**
 * The frames that scripts and this library exchange: big-endian numbers and length-prefixed strings, as the Lua
 * library `struct` packs them. One string for a whole batch is far cheaper than an argument for each part of each job.
 */
export class Writer {
  #buffer = Buffer.allocUnsafe(4_096);
  #length = 0;

  u8(value: number): this {
    this.#reserve(1);
    this.#buffer[this.#length++] = value;
    return this;
  }

  u16(value: number): this {
    this.#reserve(2);
    this.#length = this.#buffer.writeUInt16BE(value, this.#length);
    return this;
  }

  u32(value: number): this {
    this.#reserve(4);
    this.#length = this.#buffer.writeUInt32BE(value, this.#length);
    return this;
  }

  i32(value: number): this {
    this.#reserve(4);
    this.#length = this.#buffer.writeInt32BE(value, this.#length);
    return this;
  }

  f64(value: number): this {
    this.#reserve(8);
    this.#length = this.#buffer.writeDoubleBE(value, this.#length);
    return this;
  }

  /** A string of at most 64 KiB. */
  short(text: string): this {
    // A character takes at most three bytes of UTF-8.
    this.#reserve(2 + text.length * 3);
    const bytes = this.#buffer.write(text, this.#length + 2);
    this.u16(bytes);
    this.#length += bytes;
    return this;
  }

  long(text: string): this {
    this.#reserve(4 + text.length * 3);
    const bytes = this.#buffer.write(text, this.#length + 4);
    this.u32(bytes);
    this.#length += bytes;
    return this;
  }

  bytes(bytes: Uint8Array): this {
    this.#reserve(bytes.length);
    this.#buffer.set(bytes, this.#length);
    this.#length += bytes.length;
    return this;
  }

  toBuffer(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}

export class Reader {
  readonly #buffer: Buffer;
  #position = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  get position(): number {
    return this.#position;
  }

  set position(position: number) {
    this.#position = position;
  }

  /** Another reader of the same bytes, starting here. */
  from(position: number): Reader {
    const reader = new Reader(this.#buffer);
    reader.#position = position;
    return reader;
  }

  skip(bytes: number): void {
    this.#position += bytes;
  }

  /** The next byte, without consuming it. */
  peek(): number {
    return this.#buffer[this.#position] ?? 0;
  }

  /** The next bytes, one character each, without consuming them. */
  key(bytes: number): string {
    return this.#buffer.toString("latin1", this.#position, this.#position + bytes);
  }

  get isAtEnd(): boolean {
    return this.#position >= this.#buffer.length;
  }

  u8(): number {
    return this.#buffer[this.#position++] ?? 0;
  }

  u16(): number {
    this.#position += 2;
    return this.#buffer.readUInt16BE(this.#position - 2);
  }

  u32(): number {
    this.#position += 4;
    return this.#buffer.readUInt32BE(this.#position - 4);
  }

  u48(): number {
    this.#position += 6;
    return this.#buffer.readUIntBE(this.#position - 6, 6);
  }

  i32(): number {
    this.#position += 4;
    return this.#buffer.readInt32BE(this.#position - 4);
  }

  f64(): number {
    this.#position += 8;
    const value = this.#buffer.readDoubleBE(this.#position - 8);
    // The scripts never pack such a thing: something else has written it.
    if (Number.isNaN(value)) throw new RangeError("the record has something that is not a number");
    return value;
  }

  short(): string {
    return this.text(this.u16());
  }

  long(): string {
    return this.text(this.u32());
  }

  /** A long string with a mark before it, or null if there is none. */
  marked(): string | null {
    const text = this.long();
    return text === "" ? null : text.slice(1);
  }

  rest(): string {
    return this.text(this.#buffer.length - this.#position);
  }

  /** An instant, or null for one that is infinitely far away. */
  date(): Date | null {
    const instant = this.f64();
    return Number.isFinite(instant) ? instantOf(instant) : null;
  }

  text(bytes: number): string {
    if (this.#position + bytes > this.#buffer.length) throw new RangeError("the record is cut short");
    this.#position += bytes;
    return this.#buffer.toString("utf8", this.#position - bytes, this.#position);
  }
}

/** A string with a mark before it, so an empty one differs from none. */
export function marked(text: string | null): string {
  return text === null ? "" : `=${text}`;
}

/** For instants and limits: null means infinitely far away. */
export function orInfinite(value: Date | number | null): number {
  if (value === null) return Number.POSITIVE_INFINITY;
  return typeof value === "number" ? value : value.getTime();
}
