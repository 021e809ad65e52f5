import assert from "node:assert/strict";
import { Fleet, type Work } from "./fleet.ts";

/** Four processes share a thousand jobs of both kinds on a store, and start each exactly once. */
export async function assertShared(store?: string): Promise<void> {
  await using fleet = new Fleet({ lease: 30_000, concurrency: 10, ...(store !== undefined && { store }) });
  // Three processes run thirty at most, so the first 31 end only once all four take part, however fast one of them is.
  const items = (together: number) =>
    Array.from({ length: 500 }, (_, i): { input: Work } => ({
      input: { ms: 0, how: "wait", together: i <= 30 ? together : 1 },
    }));
  await fleet.client.enqueueMany(fleet.atMostOnce, items(4));
  await Promise.all([fleet.start(), fleet.start(), fleet.start(), fleet.start()]);
  await fleet.client.enqueueMany(fleet.atLeastOnce, items(1));
  await fleet.until(
    "all have succeeded",
    async () => (await fleet.client.count({ states: ["succeeded"] })) === 1_000,
  );
  const starts = fleet.starts();
  assert.equal(starts.length, 1_000);
  assert.equal(new Set(starts.map(({ id }) => id)).size, 1_000);
  assert.equal(new Set(starts.map(({ pid }) => pid)).size, 4, "all four took part");
  assert.ok(fleet.lines.every(({ what }) => what !== "stale"));
}
