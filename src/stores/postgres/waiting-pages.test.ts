import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import type { Store } from "../../store/store.ts";
import { hour, newJob } from "../../testing/conformance/scene.ts";
import { postgres } from "./index.ts";
import { newSchema } from "./test/harness.ts";

const server = await testbed.postgres();

/** More than a page of waiting jobs looks at before it reads the turns. */
const many = 1_500;

async function waiting(store: Store, order: "newest" | "oldest"): Promise<string[]> {
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const page = await store.scan({ filter: { states: ["waiting"] }, order, limit: 2, lookAt: 3, cursor });
    seen.push(...page.jobs.map(({ id }) => id));
    cursor = page.cursor;
  } while (cursor !== null);
  return seen;
}

describe("pages of waiting jobs on Postgres", { skip: server.skip }, () => {
  test("are found among the newest jobs, and under any number that have ended", async (context) => {
    const store = await postgres({ url: server.url, schema: newSchema() }).open({
      namespace: "n",
      clock: systemClock,
      log: silentLogger,
    });
    context.after(() => store.close());
    await store.migrate();
    const later = { delayMs: hour };
    const keyed = { ...later, concurrencyKey: "work:k" };
    await store.enqueue({ jobs: [newJob("a", later), newJob("b", keyed), newJob("c", later)] });
    const ended = Array.from({ length: many }, (_, n) => newJob(`ended-${n}`, later));
    await store.enqueue({ jobs: ended });
    await store.cancel({ select: { ids: ended.map(({ id }) => id) }, reason: null });
    await store.enqueue({
      jobs: [newJob("blocked", { after: ["a"] }), newJob("d", later), newJob("e", keyed)],
    });
    const all = ["a", "b", "c", "d", "e"];
    assert.deepEqual(await waiting(store, "oldest"), all);
    assert.deepEqual(await waiting(store, "newest"), all.toReversed());
  });
});
