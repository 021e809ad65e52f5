import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricsListener } from "./listener.ts";
import type { Prometheus } from "./prometheus.ts";

test("a port that is in use is an error of the library, which says what to do", async () => {
  const metrics = { contentType: "text/plain", text: async () => "" } as Partial<Prometheus> as Prometheus;
  const [first, second] = [new MetricsListener(metrics, null), new MetricsListener(metrics, null)];
  const port = await first.start(0, "127.0.0.1");
  await assert.rejects(second.start(port, "127.0.0.1"), {
    code: "metrics-unavailable",
    message: `metrics cannot be served at 127.0.0.1:${port}: another process, or another app of this one, uses it; choose another metrics.port (0: any free one)`,
  });
  await first.stop();
});
