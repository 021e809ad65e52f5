import { createHash } from "node:crypto";
import { describe, EscapementError } from "../errors.ts";

/** Which question a cursor belongs to: it means nothing to any other. */
export interface CursorScope {
  readonly order: "newest" | "oldest";
  readonly verb: "list" | "change" | "scan" | "ends" | "audit";
  /** Whatever distinguishes this namespace from the others of its store. */
  readonly namespace: string | number;
}

const digestLength = 10;

/** Writes the places where a store continues. What they mean is up to the store. */
export function writeCursor(scope: CursorScope, places: readonly number[]): string {
  const text = places.map((place) => place.toString(36)).join(".");
  return `${text}~${digestOf(scope, text)}`;
}

/**
 * Reads a cursor. One that was made up, mistyped, cut short, or returned by another question would quietly mean the start or the end,
 * so it is refused. This is a checksum and not a signature: a cursor can only lead to jobs that the same caller may list anyway.
 */
export function readCursor(scope: CursorScope, cursor: string, count: number): number[] {
  const [text = "", digest, ...rest] = typeof cursor === "string" ? cursor.split("~", 3) : [];
  if (digest === digestOf(scope, text) && rest.length === 0) {
    const places = text.split(".").map((place) => Number.parseInt(place, 36));
    if (places.length === count && places.every((place) => Number.isSafeInteger(place) && place >= 0))
      return places;
  }
  throw new EscapementError(
    "invalid-cursor",
    `expected cursor to be one that the same query returned for its previous page, got ${describe(cursor)}; start without one`,
  );
}

function digestOf({ order, verb, namespace }: CursorScope, text: string): string {
  const hash = createHash("sha256").update(`${verb}\n${order}\n${text}\n${namespace}`);
  return hash.digest("base64url").slice(0, digestLength);
}
