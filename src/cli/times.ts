import { InvalidArgumentError } from "commander";
import { type Duration, parseDuration } from "../duration.ts";
import { instantExample, parseInstant } from "../instant.ts";

const units: readonly (readonly [number, string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
];

/** A span in one unit, for a column: `45s`, `12m`, `3h`, `5d`. */
export function short(ms: number): string {
  return inUnits(ms, Math.floor);
}

function inUnits(ms: number, round: (count: number) => number): string {
  const span = Math.max(0, ms);
  const [unitMs, unit] = units.find(([size]) => span >= size) ?? [1_000, "s"];
  return `${round(span / unitMs)}${unit}`;
}

/** How long ago, or in how long. What is due in an hour stays so for more than an instant. */
export function away(instant: Date, now: Date): string {
  const ms = instant.getTime() - now.getTime();
  return ms > 0 ? `in ${inUnits(Math.ceil(ms / 1_000) * 1_000, Math.round)}` : `${short(-ms)} ago`;
}

/** A point in time: `2026-11-15T03:00:00Z`, or how long ago: `90m`, `2d`. */
export function instantOrAgo(text: string): Date {
  if (/^\d+(\.\d+)?\s*(ms|s|m|h|d|w)$/.test(text.trim()))
    return new Date(Date.now() - parseDuration(text as Duration, "time"));
  const date = parseInstant(text);
  if (date === null)
    throw new InvalidArgumentError(`expected a time such as ${instantExample}, or how long ago, such as 90m`);
  return date;
}

export function instant(text: string): Date {
  const date = parseInstant(text);
  if (date === null) throw new InvalidArgumentError(`expected a time such as ${instantExample}`);
  return date;
}

/** For options of a command: `30s`. */
export function duration(text: string): number {
  try {
    return parseDuration(/^\d+$/.test(text) ? Number(text) : text, "it");
  } catch {
    throw new InvalidArgumentError('expected a duration such as "30s", "5m" or "2h"');
  }
}
