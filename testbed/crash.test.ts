import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { testbed } from "./index.ts";
import { isListening } from "./port.ts";
import { descendants, signal } from "./process-tree.ts";
import { holderVariable } from "./protocol.ts";
import { ask } from "./resp.ts";
import { postgres, query } from "./servers/postgres.ts";
import { provide } from "./software.ts";

interface Told {
  readonly skip?: string;
  readonly url: string;
  readonly name: string;
  readonly source: string;
}

const root = join(import.meta.dirname, "..");
const children: ChildProcess[] = [];
after(() => {
  for (const child of children) child.kill("SIGKILL");
});

const { skip } = await testbed.redis();

test("an owner that is killed leaves no server and no folder behind", { skip }, async () => {
  const { child, told } = await own("stay", ["redis", "redisCluster:private"], {
    [holderVariable]: undefined,
  });
  const [redis, cluster] = told;
  assert(redis?.url && cluster?.url);
  const folder = await holderFolder(redis.url);
  assert(existsSync(folder));
  child.kill("SIGKILL");
  for (const port of [...portsOf(redis.url), ...portsOf(cluster.url)]) await untilClosed(port);
  await until(() => !existsSync(folder), "the folder is still there");
});

test("a test runner that is killed leaves no server behind", { skip }, async () => {
  const scratch = mkdtempSync(join(tmpdir(), "escapement-"));
  const file = join(scratch, "url");
  const launcher = start([join(root, "scripts/run.mjs"), "--test", "testbed/fixtures/lingering.ts"], {
    LINGERING_FILE: file,
    NODE_TEST_CONTEXT: undefined,
  });
  await until(() => existsSync(file) && readFileSync(file, "utf8") !== "", "no server was started");
  const url = readFileSync(file, "utf8");
  const folder = await holderFolder(url);
  const runner = descendants(Number(launcher.pid)).find((pid) => commandLine(pid).includes("--test\0"));
  assert(runner !== undefined);
  const files = descendants(runner);
  signal(runner, "SIGKILL");
  for (const port of portsOf(url)) await untilClosed(port);
  await until(() => !existsSync(folder), "the folder is still there");
  for (const pid of files) signal(pid, "SIGKILL");
  rmSync(scratch, { recursive: true });
});

const onLinux = process.platform === "linux" ? skip : "only Linux ends children with their parent";
test("servers end with their holder, even when it is killed", { skip: onLinux }, async () => {
  const { child, told } = await own("stay", ["redis"], { [holderVariable]: undefined });
  const url = String(told[0]?.url);
  const folder = await holderFolder(url);
  const holder = descendants(Number(child.pid)).find((pid) => commandLine(pid).includes("holder.ts"));
  assert(holder !== undefined);
  signal(holder, "SIGKILL");
  for (const port of portsOf(url)) await untilClosed(port);
  rmSync(folder, { recursive: true });
});

test("a private server ends with the process that asked for it, a shared one stays", { skip }, async () => {
  const { told } = await own("end", ["redis:private", "redis"]);
  const [ofItsOwn = "", shared = ""] = told.map(({ url }) => url);
  for (const port of portsOf(ofItsOwn)) await untilClosed(port);
  assert.equal(await ask(shared, "PING"), "PONG");
});

test("a server that is given by URL is used, tidied up and left running", { skip }, async () => {
  const given = await testbed.postgres();
  if (given.skip) return;
  const { child, told } = await own("stay", ["postgres"], {
    [holderVariable]: undefined,
    ESCAPEMENT_TEST_POSTGRES: given.url,
  });
  const [server] = told;
  assert.equal(server?.source, "environment");
  const tools = await provide([postgres.client]);
  assert(typeof tools !== "string");
  const count = `select count(*) from pg_database where datname = '${server?.name}'`;
  assert.equal(await query(tools, given.url, count), "1");
  child.kill();
  await until(async () => (await query(tools, given.url, count)) === "0", "the database is still there");
});

test("a server that cannot be had is a reason to skip, and an error when CI=true", async () => {
  const env = { [holderVariable]: undefined, PATH: "/nonexistent", CI: undefined };
  const { told } = await own("end", ["redis"], env);
  assert.match(
    String(told[0]?.skip),
    /^redis cannot be had: redis-server is not on this machine; .*apt-get.*Docker/,
  );
  await assert.rejects(own("end", ["redis"], { ...env, CI: "true" }), /ended with code 1/);
  await own("end", ["mysql8"], { ...env, CI: "true" });
});

function start(args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "ignore"],
  });
  children.push(child);
  return child;
}

async function own(then: "stay" | "end", wanted: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = start([join(import.meta.dirname, "fixtures/owner.ts"), then, ...wanted], env);
  assert(child.stdout);
  const ended = once(child, "close").then(([code]) => assert.fail(`the owner ended with code ${code}`));
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), ended]);
  ended.catch(() => {});
  return { child, told: JSON.parse(String(line)) as Told[] };
}

/** The folder of a holder has that of each of its servers, which has that of each node. */
async function holderFolder(redisUrl: string): Promise<string> {
  const [, dir] = (await ask(redisUrl, "CONFIG", "GET", "dir")).split(" ");
  return dirname(dirname(String(dir)));
}

function portsOf(url: string): number[] {
  return [...url.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port));
}

function commandLine(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8");
}

async function untilClosed(port: number): Promise<void> {
  await until(async () => !(await isListening(port)), `something still listens on port ${port}`);
}

async function until(condition: () => boolean | Promise<boolean>, otherwise: string): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await condition())) {
    assert(Date.now() < deadline, otherwise);
    await sleep(50);
  }
}
