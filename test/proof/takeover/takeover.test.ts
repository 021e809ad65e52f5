import assert from "node:assert/strict";
import { test } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import { type BrokerName, brokers } from "./broker.ts";
import { checkTakeover, takeover } from "./takeover.ts";

// Small, and with a lease that a busy machine does not lose by itself: each lease lost is one more tail that fires again.
const size = { tasks: 4_000, killAfter: 1_000, leaseMs: 15_000, inFlight: 512 };

async function show(store: "postgres" | "redis", to: BrokerName, withEffects: boolean): Promise<void> {
  const [from, broker] = [await testbed[store](), await testbed[brokers[to].server]()];
  test(`killed in the middle on ${store}, a relay to ${to} loses nothing, and only what it had named fires again [B3]`, {
    skip: from.skip || broker.skip,
  }, async (t) => {
    const lines: string[] = [];
    const places = { store: from.url, to, broker: broker.url };
    const report = await takeover({ ...size, ...places, withEffects, progress: (line) => lines.push(line) });
    t.diagnostic(JSON.stringify(report));
    checkTakeover(report);
    assert.ok(report.deliveredAtKill < report.tasks, "there was something left to take over");
  });
}

await show("postgres", "redis", true);
await show("redis", "nats", false);
