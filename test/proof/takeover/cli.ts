// npm run takeover -- --tasks 3440000 --kill-after 40000 --store URL --to redis|nats|kafka --json FILE

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { testbed } from "../../../testbed/index.ts";
import { writeSection } from "../../page-section.ts";
import { type BrokerName, brokerNames, brokers } from "./broker.ts";
import { takeoverSection } from "./page.ts";
import { checkTakeover, takeover } from "./takeover.ts";

const usage = `usage: npm run takeover -- [options]
  --tasks N          tasks due in one window of five minutes (default 100000)
  --kill-after K     the relay is killed after so many (default 40000)
  --store URL        or postgres, mysql, redis for one of the test bed (default postgres)
  --to BROKER        redis, nats or kafka (default redis)
  --broker URL       (default one of the test bed)
  --lease MS         of the partitions (default 30000)
  --in-flight N      jobs named and not settled at the most (default 4096)
  --effects          run every task through an inbox too
  --json FILE        write the report there
  --write FILE       put the figures into a page, in place of earlier ones of this store and broker`;

const { values } = parseArgs({
  options: {
    tasks: { type: "string", default: "100000" },
    "kill-after": { type: "string", default: "40000" },
    store: { type: "string", default: "postgres" },
    to: { type: "string", default: "redis" },
    broker: { type: "string" },
    lease: { type: "string", default: "30000" },
    "in-flight": { type: "string", default: "4096" },
    effects: { type: "boolean", default: false },
    json: { type: "string" },
    write: { type: "string" },
  },
});

const to = brokerNames.find((name) => name === values.to);
if (to === undefined || Number(values["kill-after"]) >= Number(values.tasks)) {
  console.error(usage);
  process.exit(2);
}
const report = await takeover({
  tasks: Number(values.tasks),
  killAfter: Number(values["kill-after"]),
  store: await storeUrl(values.store),
  to,
  broker: values.broker ?? (await brokerUrl(to)),
  leaseMs: Number(values.lease),
  inFlight: Number(values["in-flight"]),
  withEffects: values.effects,
  progress: (line) => console.log(line),
});
console.log(JSON.stringify(report, null, 2));
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
if (values.write !== undefined) {
  const store = values.store.replace(/:.*/, "");
  const name = `Takeover${values.effects ? " with effects" : ""}: ${store} to ${to}`;
  const command = `npm run takeover -- --tasks ${values.tasks} --kill-after ${values["kill-after"]} --store ${store} --to ${to} --lease ${values.lease} --in-flight ${values["in-flight"]}${values.effects ? " --effects" : ""}`;
  const day = new Date().toISOString().slice(0, 10);
  writeSection(values.write, name, takeoverSection(name, report, command, day));
}
checkTakeover(report);

async function storeUrl(name: string): Promise<string> {
  if (name !== "postgres" && name !== "mysql" && name !== "redis") return name;
  return serverUrl(name);
}

function brokerUrl(name: BrokerName): Promise<string> {
  return serverUrl(brokers[name].server);
}

async function serverUrl(name: keyof typeof testbed): Promise<string> {
  const server = await testbed[name]();
  if (server.skip !== false) throw new Error(server.skip);
  return server.url;
}
