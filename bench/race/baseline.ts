import { existsSync, readFileSync } from "node:fs";
import type { RaceReport } from "./report.ts";
import { type Heat, ratio } from "./report.ts";

/** How much of a committed ratio must be left; the rest is for noise. */
const leastPart = 0.7;

export interface Shortfall {
  readonly heat: string;
  readonly against: string;
  readonly committed: number;
  readonly now: number;
}

/** The report that is committed for a store, or null. */
export function readBaseline(store: string, durability: string): RaceReport | null {
  const file = new URL(`./figures/${store}-${durability}.json`, import.meta.url);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : null;
}

/** Where we are clearly worse against a peer than we were. A peer that could not run, then or now, is left out. */
export function shortfalls(heats: readonly Heat[], baseline: RaceReport): Shortfall[] {
  return heats.flatMap((heat) => {
    const before = baseline.heats.find(({ name }) => name === heat.name);
    if (before === undefined) return [];
    return heat.results.slice(1).flatMap(({ contestant }) => {
      const committed = advantage(before, contestant);
      const now = advantage(heat, contestant);
      if (committed === null || now === null || now >= leastPart * committed) return [];
      return [{ heat: heat.name, against: contestant, committed, now }];
    });
  });
}

/** How many times better we are: of times, the smaller is the better. */
function advantage(heat: Heat, against: string): number | null {
  const value = ratio(heat, against);
  return value === null ? null : heat.unit === "ms" ? 1 / value : value;
}
