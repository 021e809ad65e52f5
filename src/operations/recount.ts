import type { Client } from "../client/client.ts";
import type { CountRow } from "../store/questions.ts";

/** A kept count that is not the number of jobs. */
export interface WrongCount {
  readonly queue: string;
  readonly name: string;
  readonly state: string;
  readonly kept: number;
  readonly real: number;
}

const by = ["queue", "name", "state"] as const;
/** No store counts by time of enqueueing, so with this it reads its jobs. */
const everyJob = { enqueuedAfter: new Date(0) };
const rounds = 3;

/**
 * Compares the counts that the store keeps with its jobs, which reads all of them. Jobs move between the two questions, so a count is wrong
 * only if it is off by the same number each time.
 */
export async function findWrongCounts(client: Pick<Client, "countBy">): Promise<WrongCount[]> {
  let wrong = await compare(client);
  for (let round = 1; round < rounds && wrong.size > 0; round += 1) {
    const again = await compare(client);
    wrong = new Map([...again].filter(([key, count]) => offBy(wrong.get(key)) === offBy(count)));
  }
  return [...wrong.values()];
}

async function compare(client: Pick<Client, "countBy">): Promise<Map<string, WrongCount>> {
  const kept = byKey(await client.countBy(by, {}));
  const real = byKey(await client.countBy(by, everyJob));
  const found = new Map<string, WrongCount>();
  for (const key of new Set([...kept.keys(), ...real.keys()])) {
    const { queue = "", name = "", state = "" } = kept.get(key) ?? real.get(key) ?? {};
    const count = { queue, name, state, kept: kept.get(key)?.count ?? 0, real: real.get(key)?.count ?? 0 };
    if (offBy(count) !== 0) found.set(key, count);
  }
  return found;
}

function byKey(rows: readonly CountRow[]): Map<string, CountRow> {
  return new Map(rows.map((row) => [JSON.stringify([row.queue, row.name, row.state]), row]));
}

function offBy(count: WrongCount | undefined): number {
  return count === undefined ? 0 : count.kept - count.real;
}
