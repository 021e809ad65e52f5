/** Prints a line of JSON for each planted bug: the seeds that show it, and the invariants that no seed breaks. */
import { type PlantedBug, plantedBugs } from "./planted-bugs.ts";
import { simulate } from "./simulation.ts";

const mostSeeds = Number(process.argv[2]);

export interface Hunt {
  readonly name: string;
  readonly found: readonly string[];
  readonly silent: readonly string[];
}

async function hunt(bug: PlantedBug): Promise<Hunt> {
  const silent = new Set(bug.breaks);
  const found: string[] = [];
  for (let seed = 1; seed <= mostSeeds && silent.size > 0; seed += 1) {
    for (const { invariant, detail } of (await simulate(seed, { bug })).violations) {
      if (silent.delete(invariant)) found.push(`seed ${seed} breaks "${invariant}": ${detail}`);
    }
  }
  return { name: bug.name, found, silent: [...silent] };
}

for (const bug of plantedBugs) console.log(JSON.stringify(await hunt(bug)));
