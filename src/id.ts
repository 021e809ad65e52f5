import { randomFillSync } from "node:crypto";
import { crc32 } from "node:zlib";
import { slotCount } from "./store.ts";

const pool = Buffer.alloc(4096);
let used = pool.length;

/**
 * A version 7 UUID: rising with time, so that an index of ids grows at its end.
 * Random bytes are drawn in bulk, because a call to the system for each id would cost more than the id.
 */
export function newId(nowMs: number): string {
  if (used + 10 > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const time = nowMs.toString(16).padStart(12, "0");
  const a = (pool.readUInt16BE(used) & 0x0fff) | 0x7000;
  const b = (pool.readUInt16BE(used + 2) & 0x3fff) | 0x8000;
  const rest = pool.toString("hex", used + 4, used + 10);
  used += 10;
  return `${time.slice(0, 8)}-${time.slice(8)}-${a.toString(16)}-${b.toString(16)}-${rest}`;
}

/** The slot of a job: a hash of its id, or of the `{tag}` in it, so that related jobs can be kept together. */
export function slotOf(id: string): number {
  const tag = /\{([^}]+)\}/.exec(id)?.[1];
  return crc32(tag ?? id) % slotCount;
}
