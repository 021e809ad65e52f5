import { randomFillSync } from "node:crypto";
import { crc32 } from "node:zlib";
import { slotCount } from "./store.ts";

const pool = Buffer.alloc(4096);
let used = pool.length;
let lastMs = 0;
let counter = 0;

/**
 * A version 7 UUID that rises with time, and within a millisecond by a counter that starts at random: ids that are made one
 * after the other stand together in every index, which then grows at its end and shrinks at its beginning.
 * Random bytes are drawn in bulk, because a call to the system for each id would cost more than the id.
 */
export function newId(nowMs: number): string {
  if (used + 10 > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  // 25 of its 26 bits are random, so that a millisecond has room for 33 million ids.
  counter = nowMs === lastMs ? counter + 1 : pool.readUInt32BE(used) >>> 7;
  lastMs = nowMs;
  const time = nowMs.toString(16).padStart(12, "0");
  const a = (counter >>> 14) | 0x7000;
  const b = (counter & 0x3fff) | 0x8000;
  const rest = pool.toString("hex", used + 4, used + 10);
  used += 10;
  return `${time.slice(0, 8)}-${time.slice(8)}-${a.toString(16)}-${b.toString(16)}-${rest}`;
}

/** The slot of a job: a hash of its id, or of the `{tag}` in it, so that related jobs can be kept together. */
export function slotOf(id: string): number {
  const tag = /\{([^}]+)\}/.exec(id)?.[1];
  return crc32(tag ?? id) % slotCount;
}
