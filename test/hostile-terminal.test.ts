import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { before, describe, test } from "node:test";
import { createEscapement, defineJob } from "../src/index.ts";
import { silentLogger } from "../src/log.ts";
import { configure, escapement, main } from "./command.ts";
import { scratchFolder } from "./scratch.ts";

/** Clears the screen, sets the window's title, turns the direction of text, and starts a line that looks like ours. */
const hostile = "x\u001b[2J\u009b31m\u001b]0;owned\u0007\u202eevil\u2066\u007f\r\nFORGED \u2028 line";
const raw = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

function assertTame(output: string, what: string, isShown = true): void {
  const found = raw.exec(output.replaceAll("\n", ""));
  assert.equal(found, null, `${what} lets ${JSON.stringify(found?.[0])} through`);
  assert.doesNotMatch(output, /^\s*FORGED/m, `${what} lets a job write a line of its own`);
  if (isShown) assert.match(output, /\\u001b\[2J/, `${what} shows what is there`);
}

/** Whoever shares the database can put there what the client would refuse. */
async function poison(path: string): Promise<void> {
  const fail = defineJob<null>({
    name: "fail",
    run: () => {
      throw Object.assign(new Error(hostile), { name: hostile, stack: hostile });
    },
    retry: { attempts: 1 },
  });
  const app = createEscapement({ store: `sqlite:${path}`, jobs: [fail], log: silentLogger });
  await app.schedule("often", { every: "1h" }, fail, null);
  await app.pauseQueue("default");
  await app.enqueue(fail, null, { id: "waiting", tags: ["tag"] });
  await app.enqueue(fail, null, { id: "cancelled" });
  await app.cancel("cancelled", { reason: hostile });
  await app.resumeQueue("default");
  await app.enqueue(fail, null, { id: "dead" });
  await app.start();
  while ((await app.get("dead"))?.state !== "dead") await new Promise((resolve) => setTimeout(resolve, 10));
  await app.pauseQueue("default");
  await app.stop();
  using database = new DatabaseSync(path);
  const set = (sql: string): void => void database.prepare(sql).run({ h: hostile });
  set("update escapement_jobs set name = $h, queue = $h, tags = json_array($h), claimer = $h");
  set("update escapement_plain set name = $h, queue = $h");
  for (const table of ["jobs", "ended"])
    set(`update escapement_${table} set reason = $h, claimer = $h where reason is not null`);
  set("update escapement_trail set text = $h, claimer = $h");
  set("update escapement_queues set queue = $h");
  set(
    "insert into escapement_nodes select ns, $h, 0, 0, json_object('host', $h, 'pid', 1, 'version', $h, 'roles', json_array('worker'), 'queues', null, 'names', json_array($h), 'concurrency', 1, 'active', 0, 'startedAt', 0) from escapement_namespaces limit 1",
  );
  set("update escapement_schedules set key = $h, job = json_set(job, '$.name', $h)");
  set("update escapement_occurrences set key = $h, reason = $h, node = $h");
  set(
    "insert into escapement_audit (ns, at, id, actor, action, target, reason, outcome) select ns, 0, $h, $h, $h, $h, $h, json_object($h, $h) from escapement_namespaces limit 1",
  );
}

describe("what jobs say cannot leave its line on a terminal", () => {
  const folder = scratchFolder();
  const store = `sqlite:${join(folder, "app.db")}`;
  before(() => poison(join(folder, "app.db")));

  const commands: Readonly<Record<string, readonly string[]>> = {
    "explain of a dead job": ["explain", "dead"],
    "explain of a cancelled job": ["explain", "cancelled"],
    "explain of nothing": ["explain", hostile],
    "explain of an occurrence": ["explain", `${hostile}@2026-11-15T03:00:00Z`],
    status: ["status"],
    doctor: ["doctor"],
    "jobs ls": ["jobs", "ls"],
    "jobs show": ["jobs", "show", "dead"],
    "jobs show of nothing": ["jobs", "show", hostile],
    "jobs tail": ["jobs", "tail", "dead"],
    "jobs ls of a state that there is not": ["jobs", "ls", "--state", hostile.replaceAll("\n", " ")],
    "jobs cancel": ["jobs", "cancel", hostile],
    dead: ["dead"],
    "queues ls": ["queues", "ls"],
    "queues resume": ["queues", "resume", hostile],
    nodes: ["nodes"],
    audit: ["audit"],
    "schedules ls": ["schedules", "ls"],
    "schedules show": ["schedules", "show", hostile],
    "schedules of another key": ["schedules", "show", `no ${hostile}`],
    "a store that is not there": ["status", "--store", `nowhere:${hostile}`],
    tick: ["tick"],
  };

  for (const [what, args] of Object.entries(commands)) {
    test(what, async () => {
      const where = args.includes("--store") ? [] : ["--store", store];
      const { stdout, stderr } = await escapement(folder, ...args, ...where);
      assertTame(stdout + stderr, what, !["tick", "a store that is not there", "jobs cancel"].includes(what));
    });
  }

  test("--json means the same as before, and holds nothing raw", async () => {
    const { stdout } = await escapement(folder, "status", "--json", "--store", store);
    assertTame(stdout, "status --json");
    assert(JSON.parse(stdout).counts.some(({ name }: { name: string }) => name === hostile));
  });

  test("the lines and the JSON of start", async () => {
    for (const json of [false, true]) {
      const own = scratchFolder();
      const source = JSON.stringify(hostile);
      configure(
        own,
        `defineJob({ name: "fail", retry: { attempts: 1 }, run() { throw new Error(${source}); } })`,
        { settings: `store: "sqlite:app.db",` },
      );
      const app = createEscapement({ store: `sqlite:${join(own, "app.db")}`, log: silentLogger });
      await app.enqueue(defineJob<null>({ name: "fail" }), null);
      await app.stop();
      const child = execFile(process.execPath, [main, "start", ...(json ? ["--json"] : [])], { cwd: own });
      let output = "";
      const ended = new Promise((resolve) => child.once("close", resolve));
      for (const stream of [child.stdout, child.stderr]) {
        stream?.on("data", (data) => {
          output += data;
          if (output.includes("u001b")) child.kill("SIGTERM");
        });
      }
      await ended;
      assertTame(output, "start");
    }
  });
});
