import { randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import { slotCount } from "./store/partitions.ts";

/** Random bytes in hexadecimal. They are drawn in bulk, because a call to the system for each id would cost more than the id. */
let pool = "";
let used = 0;
let lastMs = 0;
let counter = 0;
/** How an id of `lastMs` begins, and the upper half of the counter that is in it. */
let beginning = "";
let upper = 0;

/**
 * A version 7 UUID that rises with time, and within a millisecond by a counter that starts at random: ids that are made one
 * after the other are together in every index, which then grows at its end and shrinks at its beginning.
 */
export function newId(nowMs: number): string {
  // 25 of its 26 bits are random, so a millisecond has room for 33 million ids.
  counter = nowMs === lastMs ? counter + 1 : Number.parseInt(draw(8), 16) >>> 7;
  if (nowMs !== lastMs || counter >>> 14 !== upper) {
    lastMs = nowMs;
    upper = counter >>> 14;
    const time = nowMs.toString(16).padStart(12, "0");
    beginning = `${time.slice(0, 8)}-${time.slice(8)}-${(upper | 0x7000).toString(16)}-`;
  }
  return `${beginning}${((counter & 0x3fff) | 0x8000).toString(16)}-${draw(12)}`;
}

function draw(digits: number): string {
  if (used + digits > pool.length) {
    pool = randomBytes(4_096).toString("hex");
    used = 0;
  }
  used += digits;
  return pool.slice(used - digits, used);
}

/** The slot of a job: a hash of its id, or of the `{tag}` in it, so related jobs can be kept together. */
export function slotOf(id: string): number {
  const tag = id.includes("{") ? /\{([^}]+)\}/.exec(id)?.[1] : undefined;
  return checksum(tag ?? id) % slotCount;
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit += 1)
    remainder = remainder & 1 ? (remainder >>> 1) ^ 0xedb88320 : remainder >>> 1;
  return remainder;
});

/** CRC-32. For a short text, calling into zlib costs more than the sum itself. */
function checksum(text: string): number {
  let sum = 0xffffffff;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code > 127) return crc32(text);
    sum = (crcTable[(sum ^ code) & 0xff] as number) ^ (sum >>> 8);
  }
  return (sum ^ 0xffffffff) >>> 0;
}
