import { existsSync, readdirSync, readFileSync } from "node:fs";
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

const figures = new URL("./figures/", import.meta.url);

/**
 * The reports that are committed for a store: of a whole race on a quiet machine, and of short ones on other machines and busy ones, which
 * end in `-short`. Ratios differ between them by as much as half: what waits for an answer pays more for waking up where nothing else runs,
 * and more where a sync takes long.
 */
export function readBaseline(store: string, durability: string): RaceReport[] {
  const isWanted = (file: string): boolean =>
    file === `${store}-${durability}.json` ||
    (file.startsWith(`${store}-${durability}-`) && file.endsWith("-short.json"));
  return existsSync(figures)
    ? readdirSync(figures)
        .filter(isWanted)
        .map((file) => JSON.parse(readFileSync(new URL(file, figures), "utf8")))
    : [];
}

/** Where we are clearly worse against a peer than we ever were. A peer that could not run, then or now, is left out. */
export function shortfalls(heats: readonly Heat[], baseline: readonly RaceReport[]): Shortfall[] {
  return heats.flatMap((heat) =>
    heat.results.slice(1).flatMap(({ contestant }) => {
      if (contestant === "raw loop") return [];
      const committed = lowest(heat.name, contestant, baseline);
      const now = advantage(heat, contestant);
      if (committed === null || now === null || now >= leastPart * committed) return [];
      return [{ heat: heat.name, against: contestant, committed, now }];
    }),
  );
}

function lowest(name: string, against: string, baseline: readonly RaceReport[]): number | null {
  const known = baseline
    .flatMap(({ heats }) => heats.filter((heat) => heat.name === name))
    .map((heat) => advantage(heat, against))
    .filter((value) => value !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/** How many times better we are: of times, the smaller is the better. */
function advantage(heat: Heat, against: string): number | null {
  const value = ratio(heat, against);
  return value === null ? null : heat.unit === "ms" ? 1 / value : value;
}
