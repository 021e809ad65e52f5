import type { Store } from "../../store/store.ts";
import { pages } from "./operation.ts";
import { type At, minutesSince } from "./time.ts";
import { scheduleKeys } from "./world.ts";

/** Lists whose order the contract leaves open. */
const unordered = new Set(["count", "reap", "acquirePartitions"]);

/** An answer in the form in which answers of different stores must be equal. */
export function comparable(verb: string, answer: unknown, base: Date): unknown {
  const plain = plainly(answer, base);
  return unordered.has(verb) && Array.isArray(plain)
    ? plain.map((one) => JSON.stringify(one)).toSorted()
    : plain;
}

/** Instants become minutes since the start; sets that are shown as lists are sorted; hints are left out. */
function plainly(value: unknown, base: Date, key = ""): unknown {
  if (value instanceof Date) return minutesSince(base, value);
  if (Array.isArray(value)) {
    const plain = value.map((one) => plainly(one, base));
    return key === "waitsFor" || key === "names" ? plain.toSorted() : plain;
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, one]) => [name, plainly(one, base, name)]));
}

/** A claim's nextAt may be too early: of it only this much is compared, that it never leaves a job lying. */
export function claimsAtOnce(answer: unknown): boolean {
  if (typeof answer !== "object" || answer === null) return false;
  if ("claimed" in answer) return claimsAtOnce(answer.claimed);
  if (!("nextAt" in answer && "now" in answer && "fragile" in answer)) return false;
  return answer.nextAt instanceof Date && answer.now instanceof Date && answer.nextAt <= answer.now;
}

/** The same without the hint. */
export function withoutNextAt(answer: unknown): unknown {
  if (typeof answer !== "object" || answer === null) return answer;
  if ("claimed" in answer) return { ...answer, claimed: withoutNextAt(answer.claimed) };
  if (!("nextAt" in answer && "fragile" in answer)) return answer;
  const { nextAt: _, ...rest } = answer;
  return rest;
}

/** Everything that can be seen of a store. */
export async function visibleState(store: Store, at: At): Promise<Record<string, unknown>> {
  const jobs = await pages(async (cursor) => {
    const page = await store.list({ filter: {}, limit: 100, order: "oldest", cursor });
    return { items: page.jobs, cursor: page.cursor };
  });
  const [from, to] = [at(-1_000 * 3_600_000), at(100_000 * 3_600_000)];
  return {
    jobs,
    trails: await Promise.all(jobs.map(({ id }) => store.trail({ id }))),
    counts: comparable("count", await store.count({ filter: {}, by: ["state", "queue", "name"] }), at(0)),
    queues: await store.queues(),
    nodes: await store.nodes(),
    partitions: await store.partitions(),
    schedules: await store.schedules({ keys: null }),
    ledgers: await Promise.all(scheduleKeys.map((key) => store.occurrences({ key, from, to, limit: 1_000 }))),
  };
}
