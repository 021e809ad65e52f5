// npm run fuzz:api -- --store postgres --examples 50

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createApi, toNodeListener } from "../../src/api/index.ts";
import { createEscapement, defineJob, type Escapement, UnrecoverableError } from "../../src/index.ts";
import { endOwnHolder } from "../../testbed/connection.ts";
import { testbed } from "../../testbed/index.ts";
import { fetchSchemathesis, runSchemathesis } from "./schemathesis.ts";

const usage =
  "usage: npm run fuzz:api -- [--store sqlite|postgres|mysql|redis|memory] [--examples N] [--seed N]";

/** What every answer is held against: never a 5xx, and the API's own description. */
const checks = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_schema_conformance",
  "unsupported_method",
];
/** Longer than this is a hang. Streams stay open on purpose, and have tests of their own. */
const longestSeconds = 20;
const streams = "events";

const succeed = defineJob({ name: "succeed", run: () => "done" });
const fail = defineJob({
  name: "fail",
  run: () => {
    throw new UnrecoverableError("it never works");
  },
});

/** Jobs in several states and a schedule, so that requests find something. */
async function furnish(app: Escapement): Promise<void> {
  for (let n = 0; n < 20; n += 1) {
    await app.enqueue(succeed, null, { id: `succeeded-${n}` });
    await app.enqueue(fail, null, { id: `dead-${n}` });
    await app.enqueue(succeed, null, { id: `waiting-${n}`, delay: "1h", tags: [`tag-${n}`] });
  }
  await app.schedule("nightly", { cron: "0 3 * * *" }, succeed, null);
}

async function storeUrl(name: string, folder: string): Promise<string> {
  if (name === "memory") return "memory:";
  if (name === "sqlite") return `sqlite:${join(folder, "fuzz.db")}`;
  if (name !== "postgres" && name !== "mysql" && name !== "redis") throw new Error(usage);
  const server = await testbed[name]();
  if (server.skip !== false) throw new Error(server.skip);
  return server.url;
}

async function fuzz(store: string, examples: number, seed: string | undefined): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "escapement-fuzz-"));
  const app = createEscapement({
    store: await storeUrl(store, folder),
    namespace: `fuzz-${process.pid}`,
    jobs: [succeed, fail],
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: console.error },
  });
  const token = randomBytes(32).toString("hex");
  const listener = toNodeListener(createApi(app, { tokens: [{ token, actor: "fuzz", role: "admin" }] }));
  // Node itself refuses a long address, with an empty answer; here the API shall see it.
  const server = createServer(
    { maxHeaderSize: 1_048_576 },
    (request, response) => void listener(request, response),
  );
  try {
    await app.start();
    await furnish(app);
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const description = fileURLToPath(new URL("../../docs/openapi.json", import.meta.url));
    const args = [
      description,
      ...["--url", `http://127.0.0.1:${port}`, "--header", `Authorization: Bearer ${token}`],
      ...["--checks", checks.join(","), "--exclude-path-regex", streams],
      ...["--max-examples", String(examples), "--request-timeout", String(longestSeconds)],
      ...["--suppress-health-check", "all", "--warnings", "off", "--no-color"],
      ...(seed === undefined ? [] : ["--seed", seed]),
    ];
    const found = await runSchemathesis(await fetchSchemathesis(), args, folder);
    // Whatever was sent, the app behind the API still works.
    const { id } = await app.enqueue(succeed, null, { priority: 1_000 });
    await app.resumeQueue("default");
    await app.configureQueue("default", { concurrency: null, rate: null });
    await app.result(id, { timeout: "60s" });
    return found;
  } finally {
    server.closeAllConnections();
    server.close();
    await app.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "sqlite" },
    examples: { type: "string", default: "20" },
    seed: { type: "string" },
  },
});
const examples = Number(values.examples);
if (!Number.isInteger(examples) || examples < 1) {
  console.error(usage);
  process.exit(1);
}
process.exitCode = await fuzz(values.store, examples, values.seed);
await endOwnHolder();
