import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createEscapement, defineJob } from "../src/index.ts";
import { silentLogger } from "../src/log.ts";
import { newFolder } from "./behaviour/stores.ts";
import { configure, escapement, main } from "./command.ts";

const echo = `defineJob({ name: "echo", run: ({ input }) => ({ heard: input }) })`;
const slow = `defineJob({ name: "slow", run: ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", resolve)) })`;

/** A started command, and what it has said so far. */
function start(folder: string, ...args: string[]) {
  const child: ChildProcess = spawn(process.execPath, [main, "start", ...args], { cwd: folder });
  const said = { stdout: "", stderr: "" };
  child.stdout?.on("data", (data) => {
    said.stdout += data;
  });
  child.stderr?.on("data", (data) => {
    said.stderr += data;
  });
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const until = async (pattern: RegExp, stream: "stdout" | "stderr" = "stdout"): Promise<void> => {
    const deadline = performance.now() + 60_000;
    while (!pattern.test(said[stream])) {
      assert(
        performance.now() < deadline,
        `${pattern} was not said within a minute: ${JSON.stringify(said)}`,
      );
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  return { child, said, ended, until };
}

async function enqueue(folder: string, name: string, input: unknown): Promise<void> {
  const store = `sqlite:${join(folder, "app.db")}`;
  await using app = createEscapement({ store, jobs: [], log: silentLogger });
  await app.enqueue(defineJob<unknown>({ name }), input);
}

describe("the command start", () => {
  for (const [flags, expected] of [
    [[], false],
    [["--with-inputs"], true],
  ] as const) {
    test(`--json ${flags.join("")} ${expected ? "shows" : "hides"} inputs and results`, async () => {
      const folder = newFolder();
      configure(folder, echo);
      await enqueue(folder, "echo", { secret: "xyzzy" });
      const { child, said, ended, until } = start(folder, "--json", ...flags);
      await until(/"event":"succeeded"/);
      child.kill("SIGTERM");
      assert.equal(await ended, 0);
      assert.match(said.stdout, /"event":"started","job":\{"id":/);
      assert.equal(said.stdout.includes("xyzzy"), expected, said.stdout);
      assert.equal(said.stdout.includes('"heard"'), expected, said.stdout);
    });
  }

  test("the first Ctrl-C says what is waited for, and how to go at once", async () => {
    const folder = newFolder();
    configure(folder, slow);
    await enqueue(folder, "slow", null);
    const { child, ended, until } = start(folder, "--timeout", "2s");
    await until(/started +slow/);
    child.kill("SIGINT");
    await until(/^waiting for 1 job, press Ctrl-C again to stop now$/m, "stderr");
    assert.equal(await ended, 0);
  });

  test("with nothing to run it says so, and fails", async () => {
    const folder = newFolder();
    const { code, stdout, stderr } = await escapement(folder, "start");
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, /there is nothing to run: .+ has no config file; make one with "escapement init"/);
    configure(folder, "");
    const empty = await escapement(folder, "start");
    assert.deepEqual([empty.code, /config\.ts lists no jobs/.test(empty.stderr)], [2, true], empty.stderr);
  });
});

describe("small things of the command line", () => {
  test("help knows commands below commands", async () => {
    const folder = newFolder();
    const { code, stdout } = await escapement(folder, "help", "schedules", "show");
    assert.equal(code, 0);
    assert.match(stdout, /^Usage: escapement schedules show \[options\] <key>/);
    assert.equal((await escapement(folder, "help", "schedules", "sohw")).code, 2);
    assert.match((await escapement(folder, "help")).stdout, /^Usage: escapement \[options\] \[command\]/);
  });

  test("trigger prints the job's id; status tells what is due from what is due later", async () => {
    const folder = newFolder();
    const store = `sqlite:${join(folder, "app.db")}`;
    await using app = createEscapement({ store, jobs: [], log: silentLogger });
    const report = defineJob<number>({ name: "report" });
    await app.schedule("nightly", { cron: "0 3 * * *" }, report, 1);
    const { stdout } = await escapement(folder, "schedules", "trigger", "nightly", "--store", store);
    assert.equal((await app.get(stdout.trim()))?.name, "report");
    await app.enqueue(report, 2, { delay: "1h" });
    await app.enqueue(report, 3, { delay: "2h" });
    const status = await escapement(folder, "status", "--store", store);
    assert.match(status.stdout, /^queue +job +due +later\ndefault +report +1 +2$/m);
  });
});
