import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { Registry } from "prom-client";
import { parse } from "yaml";
import { newReceived } from "../src/consumer/test/memory-source.ts";
import { stage } from "../src/consumer/test/stage.ts";
import { createEscapement, defineJob } from "../src/index.ts";
import { silentLogger } from "../src/log.ts";
import { memory } from "../src/stores/memory/index.ts";
import { until } from "../src/testing/transports/scene.ts";
import { provide } from "../testbed/software.ts";
import { scratchFolder } from "./scratch.ts";

const folder = join(import.meta.dirname, "../examples/observability");
const alerts = readFileSync(join(folder, "alerts.yml"), "utf8");
const dashboard = JSON.parse(readFileSync(join(folder, "grafana-dashboard.json"), "utf8")) as {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
};
const queries = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

const tools = await provide([{ programs: ["promtool"], packages: [["prometheus"]] }]);
if (typeof tools === "string" && process.env["CI"] === "true") throw new Error(tools);
const skip = typeof tools === "string" ? tools : false;

async function promtool(...args: string[]): Promise<string> {
  assert.ok(typeof tools !== "string");
  const { file, args: all } = tools.command("promtool", args);
  const { stdout } = await promisify(execFile)(file, [...all]);
  return stdout;
}

test("promtool takes the alert rules", { skip }, async () => {
  assert.match(await promtool("check", "rules", join(folder, "alerts.yml")), /SUCCESS: \d+ rules found/);
});

test("promtool takes every query of the dashboard", { skip }, async () => {
  // Grafana puts in its own span.
  const rules = queries.map((expr, index) => ({
    record: `query_${index}`,
    expr: expr.replaceAll("$__rate_interval", "5m"),
  }));
  const path = join(scratchFolder("dashboard"), "rules.yml");
  writeFileSync(path, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
  assert.match(await promtool("check", "rules", path), /SUCCESS/);
});

/** All that an app and a consumer can count. */
async function known(): Promise<Set<string>> {
  const [ofApp, ofConsumer] = [new Registry(), new Registry()];
  const job = defineJob<null>({ name: "work", run: () => {} });
  await using app = createEscapement({
    store: memory(),
    jobs: [job],
    metrics: { registry: ofApp },
    log: silentLogger,
  });
  await app.metrics();
  await using scene = await stage({ jobs: [job], metrics: { registry: ofConsumer } });
  await scene.source.send(newReceived("work", null));
  await until("it is handled", () => scene.source.acked.length === 1);
  await scene.consumer.metrics();
  const names = [ofApp, ofConsumer].flatMap((registry) =>
    registry.getMetricsAsArray().map(({ name }) => name),
  );
  return new Set(names);
}

test("every metric that alerts, dashboard and runbook name exists, and the dashboard shows every metric", async () => {
  const names = await known();
  const used = (text: string): string[] =>
    [...text.matchAll(/escapement_\w+/g)].map(([name]) =>
      names.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ""),
    );
  const rules = (parse(alerts) as { groups: { rules: { expr: string }[] }[] }).groups.flatMap(
    (one) => one.rules,
  );
  const runbook = readFileSync(join(import.meta.dirname, "../docs/RUNBOOK.md"), "utf8");
  const shown = new Set(used(queries.join("\n")));
  for (const [what, text] of [
    ["alerts", rules.map(({ expr }) => expr).join("\n")],
    ["dashboard", queries.join("\n")],
    ["runbook", runbook],
  ] as const) {
    const unknown = used(text).filter((name) => !names.has(name));
    assert.deepEqual(unknown, [], `${what} names what nobody counts`);
  }
  const told = new Set(used(runbook));
  // When the last canary came is a time, for the alert; short names in the runbook share a beginning.
  assert.deepEqual(
    [...names].filter((name) => !shown.has(name) && name !== "escapement_canary_last_seconds"),
    [],
    "not on the dashboard",
  );
  const shortened = /_(partitions_held|relays)$/;
  assert.deepEqual(
    [...names].filter((name) => !told.has(name) && !shortened.test(name)),
    [],
    "not in the runbook",
  );
});

test("every alert says what is wrong", () => {
  const { groups } = parse(alerts) as {
    groups: { rules: { alert: string; annotations?: { summary?: string } }[] }[];
  };
  const without = groups.flatMap(({ rules }) => rules).filter(({ annotations }) => !annotations?.summary);
  assert.deepEqual(without, []);
});
