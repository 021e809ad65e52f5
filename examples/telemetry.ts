// Traces through OpenTelemetry, metrics for Prometheus, and probes for an orchestrator.
// #region main
import { createEscapement, defineJob } from "../src/index.ts";
import { openTelemetry } from "../src/opentelemetry/index.ts"; // npm install @opentelemetry/api, and the SDK of your choice

const greet = defineJob<{ name: string }>({ name: "greet", run: ({ input }) => `Hello, ${input.name}!` });

const app = createEscapement({
  store: "sqlite:.escapement/telemetry.db",
  jobs: [greet],
  telemetry: openTelemetry(),
  metrics: { port: 0 }, // npm install prom-client; 0 takes any free port, 9464 is the usual one
});
await app.start();
// #endregion

await app.result(await app.enqueue(greet, { name: "Ada" }));
const at = `http://127.0.0.1:${app.metricsPort}`;
const metrics = await (await fetch(`${at}/metrics`)).text();
console.log(metrics.split("\n").find((line) => /^escapement_jobs_total.*succeeded/.test(line)));
console.log(`ready: ${(await fetch(`${at}/readyz`)).status}`);
await app.stop();
