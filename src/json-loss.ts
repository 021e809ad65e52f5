/**
 * What `JSON.stringify` loses silently: a number that is not finite and an invalid date become null, and what holds its content
 * elsewhere than in properties (a `Map`, an `Error`, a promise) becomes `{}`. An instance of a class is its fields, as always in JSON, and a
 * property that is undefined or a function is left out.
 */
import { describe } from "./errors.ts";

/** A place in a value: what holds it, and under which key. */
interface Place {
  readonly value: object;
  readonly key: string;
  readonly parent: Place | null;
}

/** Null if nothing is lost; otherwise what is, and where: `a Map at "orders.0.items"`. */
export function jsonLoss(value: unknown, text: string): string | null {
  // All of these leave one of three traces, which is quicker to see than a walk over the value.
  if (!text.includes("null") && !text.includes("{}") && !text.includes('{"0":')) return null;
  const lost = lossOf(value);
  if (lost !== null) return lost;
  if (!isWalked(value)) return null;
  // No recursion: `JSON.stringify` goes deeper than our stack would. It ends, since it has just ended there.
  const places: Place[] = [];
  let place: Place | undefined = { value, key: "", parent: null };
  while (place !== undefined) {
    const inside = place.value as Readonly<Record<string, unknown>>;
    // Much quicker than a list of the keys; what is inherited was not written, so it is no loss.
    for (const key in inside) {
      const one = inside[key];
      if (typeof one === "string" || one === null) continue;
      const loss = lossOf(one);
      if (loss !== null && Object.hasOwn(inside, key)) return `${loss} at ${pathTo(place, key)}`;
      if (isWalked(one)) places.push({ value: one, key, parent: place });
    }
    place = places.pop();
  }
  return null;
}

/** What says itself how it is written is believed. */
function isWalked(value: unknown): value is object {
  return typeof value === "object" && value !== null && !("toJSON" in value);
}

function lossOf(value: unknown): string | null {
  if (typeof value === "number") return Number.isFinite(value) ? null : describe(value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const prototype: object | null = Object.getPrototypeOf(value);
  // A plain object; one of another realm has another `Object.prototype`.
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return null;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? describe(value) : null;
  if ("toJSON" in value) return null;
  const tag = Object.prototype.toString.call(value).slice("[object ".length, -1);
  const isLost = ArrayBuffer.isView(value) || (tag !== "Object" && Object.keys(value).length === 0);
  return isLost ? named(tag) : null;
}

/** A class may call itself anything. */
function named(tag: string): string {
  if (!/^\w{1,50}$/.test(tag)) return "an object";
  return `${/^[AEIO]/.test(tag) ? "an" : "a"} ${tag}`;
}

/** Quoted, and cut where it is long: the description is also kept in the store. */
function pathTo(place: Place, key: string): string {
  const keys = [key];
  for (let one: Place | null = place; one !== null && one.parent !== null; one = one.parent)
    keys.push(one.key);
  return describe(keys.reverse().join("."));
}
