import { describe, EscapementError } from "./errors.ts";

type Unit = "ms" | "s" | "m" | "h" | "d" | "w";

/** Milliseconds as a number, or a number with a unit: `"250ms"`, `"30s"`, `"1.5h"`. */
export type Duration = number | `${number}${Unit}`;

const unitMs: Readonly<Record<Unit, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** A century: beyond it a duration is a mistake, and below it every sum of instants stays exact. */
const maxDurationMs = 100 * 366 * 86_400_000;

/**
 * Reads a duration into whole milliseconds.
 *
 * @throws EscapementError `invalid-duration`, naming the option.
 */
export function parseDuration(value: unknown, option: string): number {
  const ms = typeof value === "string" ? parseText(value) : value;
  if (typeof ms !== "number" || !Number.isFinite(ms) || ms < 0 || ms > maxDurationMs) {
    throw new EscapementError(
      "invalid-duration",
      `expected ${option} to be a duration such as 500 or "30s", not negative and at most 100 years, got ${describe(value)}`,
    );
  }
  return Math.round(ms);
}

function parseText(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)$/.exec(text.trim());
  return match ? Number(match[1]) * unitMs[match[2] as Unit] : Number.NaN;
}

/** A span of time for a person: `"1m 30s"`. At most two units, the rest is rounded away. */
export function formatDuration(ms: number): string {
  const step = lastShownMs(ms);
  let rest = Math.round(ms / step) * step;
  if (rest < unitMs.s) return `${rest}ms`;
  const parts: string[] = [];
  for (const unit of ["d", "h", "m", "s"] as const) {
    const count = unit === "s" ? rest / unitMs.s : Math.floor(rest / unitMs[unit]);
    rest -= count * unitMs[unit];
    if (count > 0) parts.push(`${count}${unit}`);
  }
  return parts.join(" ");
}

/** The last digit that is shown: rounding to it first lets 59.97 s be a minute, and not 60 seconds. */
function lastShownMs(ms: number): number {
  if (ms >= unitMs.d) return unitMs.h;
  if (ms >= unitMs.h) return unitMs.m;
  return ms >= unitMs.s ? unitMs.s / 10 : unitMs.ms;
}
