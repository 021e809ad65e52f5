import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { createEscapement, defineJob, type Escapement } from "../src/index.ts";
import { silentLogger } from "../src/log.ts";
import { until } from "../src/testing/until.ts";
import { escapement, main } from "./command.ts";
import { scratchFolder } from "./scratch.ts";
import { noTerminal, openTerminal, plainText } from "./terminal.ts";

const hello = defineJob<{ name: string }, unknown>({ name: "hello" });

/** What `init` writes, with the package where npm would put it. */
async function project(): Promise<{ folder: string; handler: string; store: string }> {
  const folder = scratchFolder("dev");
  const installed = join(folder, "node_modules/escapement");
  mkdirSync(installed, { recursive: true });
  const exported = { ".": "./index.js" };
  writeFileSync(
    join(installed, "package.json"),
    JSON.stringify({ name: "escapement", type: "module", exports: exported }),
  );
  const source = pathToFileURL(join(import.meta.dirname, "../src/index.ts")).href;
  writeFileSync(join(installed, "index.js"), `export * from ${JSON.stringify(source)};\n`);
  assert.equal((await escapement(folder, "init")).code, 0);
  const store = `sqlite:${join(folder, ".escapement/escapement.db")}`;
  return { folder, handler: join(folder, "jobs/hello.mts"), store };
}

/** The example's handler, with another body. */
function writeHandler(file: string, body: string): void {
  const text = `import { defineJob } from "escapement";
import { existsSync } from "node:fs";
export const hello = defineJob<{ name: string }>({ name: "hello", run: async ({ input }) => { ${body} } });
void existsSync;
`;
  writeFileSync(file, text);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** What the job that is enqueued now returns, once it has succeeded. */
async function resultOf(app: Escapement, name: string): Promise<unknown> {
  const { id } = await app.enqueue(hello, { name });
  return await app.result(id, { timeout: "60s" });
}

describe("the command dev", () => {
  test("runs a project, serves its dashboard, and follows its sources until Ctrl-C [K12]", {
    skip: noTerminal,
  }, async () => {
    const { folder, handler, store } = await project();
    const terminal = openTerminal(folder, ["dev", "--port", "0"], { columns: 200 });
    const count = (pattern: RegExp): number => [...plainText(terminal.output).matchAll(pattern)].length;
    const said = (pattern: RegExp, times = 1): Promise<void> =>
      until(`${pattern} is said`, () => count(pattern) >= times);
    await said(/ running +1 definition of escapement\.config\.mts/g);
    const url = /^\S+ dashboard +(http:\/\/127\.0\.0\.1:\d+)$/m.exec(plainText(terminal.output))?.[1];
    assert(url !== undefined && terminal.output.trimStart().split("\n")[0]?.includes(url), terminal.output);
    const role = async (): Promise<unknown> => JSON.parse(await (await fetch(`${url}/api/me`)).text()).role;
    assert.equal(await role(), "admin");

    await using app = createEscapement({ store, jobs: [], log: silentLogger });
    assert.equal(await resultOf(app, "Ada"), "Hello, Ada!");
    await said(/ succeeded +hello /g);

    const source = readFileSync(handler, "utf8");
    writeFileSync(handler, source.replace("`Hello, ", "`Goodbye, "));
    await said(/ changed +jobs\/hello\.mts$/gm);
    await said(/ restarting$/gm);
    await said(/ running /g, 2);
    assert.equal(await resultOf(app, "Bob"), "Goodbye, Bob!");
    assert.equal(await role(), "admin", "at the same address");
    assert.equal(count(/ dashboard /g), 1);

    writeFileSync(handler, source.replace("run: (", "run: ( =>"));
    await said(
      / broken +cannot load .+ \(jobs\/hello\.mts:\d+\) \[invalid-option\]; waiting for the next change$/gm,
    );
    assert.equal(count(/ ended /g), 0, "one message");
    assert(terminal.output.includes("\u001b[31mbroken"), "in red");

    writeHandler(handler, "return process.pid;");
    await said(/ running /g, 3);
    const pid = await resultOf(app, "Cy");
    assert(typeof pid === "number" && isAlive(pid));

    terminal.type("\u0003");
    assert.equal(await terminal.ended, 0, terminal.output);
    assert.equal(count(/ stopping /g), 1);
    assert.equal(isAlive(pid), false);
    await assert.rejects(role());
  });

  /** The command for a program, and the events that it has printed. */
  function start(folder: string, ...args: string[]) {
    const child: ChildProcess = spawn(process.execPath, [main, "dev", "--json", ...args], {
      cwd: folder,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const events: { readonly event: string; readonly [key: string]: unknown }[] = [];
    assert(child.stdout);
    createInterface({ input: child.stdout }).on("line", (line) => events.push(JSON.parse(line)));
    const find = (event: string, nth = 1) => events.filter((one) => one.event === event)[nth - 1];
    const said = async (event: string, nth = 1): Promise<(typeof events)[number]> => {
      await until(`${event} is said`, () => find(event, nth) !== undefined);
      return find(event, nth) as (typeof events)[number];
    };
    return { child, said, find };
  }

  test("a job that runs when a source changes is finished by the handler that began it", async () => {
    const { folder, handler, store } = await project();
    const pause = "await new Promise((resolve) => setTimeout(resolve, 20));";
    writeHandler(handler, `while (!existsSync("go")) ${pause} return "old";`);
    const { child, said, find } = start(folder, "--port", "0");
    try {
      await said("running");
      await using app = createEscapement({ store, jobs: [], log: silentLogger });
      const { id } = await app.enqueue(hello, { name: "Ada" });
      await said("started");
      writeHandler(handler, `return "new";`);
      assert.equal((await said("waiting"))["jobs"], 1);
      assert.equal(find("running", 2), undefined);
      writeFileSync(join(folder, "go"), "");
      assert.equal(await app.result(id, { timeout: "60s" }), "old");
      await said("running", 2);
      assert.equal((await app.get(id))?.attempt, 1);
      assert.equal(await resultOf(app, "Bob"), "new");
    } finally {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      assert.deepEqual(await ended, [0, null]);
    }
  });

  test("a second Ctrl-C does not wait for jobs, and leaves nothing running either", async () => {
    const { folder, handler } = await project();
    writeHandler(handler, `await new Promise(() => setInterval(() => {}, 1_000));`);
    const { child, said } = start(folder, "--port", "0");
    const ended = once(child, "exit");
    try {
      const { url } = await said("dashboard");
      await said("running");
      assert.equal((await escapement(folder, "enqueue", "hello", "--input", `{"name":"Ada"}`)).code, 0);
      await said("started");
      child.kill("SIGINT");
      await said("waiting");
      // Within a second it counts as the same Ctrl-C.
      await until("dev has ended", () => child.exitCode !== null || !child.kill("SIGINT"));
      assert.deepEqual(await ended, [130, null]);
      await until("the dashboard is gone", () =>
        fetch(String(url)).then(
          () => false,
          () => true,
        ),
      );
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("an app whose handler blocks its loop is killed, and replaced", async () => {
    const { folder, handler } = await project();
    writeHandler(handler, "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);");
    const { child, said } = start(folder, "--port", "0", "--timeout", "1ms");
    try {
      await said("running");
      assert.equal((await escapement(folder, "enqueue", "hello", "--input", `{"name":"Ada"}`)).code, 0);
      await said("started");
      writeHandler(handler, "return 1;");
      assert.equal((await said("ended"))["how"], "killed");
      await said("running", 2);
    } finally {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      assert.deepEqual(await ended, [0, null]);
    }
  });

  test("an app that ends or throws at its start waits for a change; a killed dev leaves none behind", async () => {
    const { folder, handler, store } = await project();
    // The usual port, unless another program has it already.
    const other = createServer();
    await new Promise<unknown>((resolve) => {
      other.once("listening", resolve).once("error", resolve).listen(3_811, "127.0.0.1");
    });
    writeFileSync(handler, `export const hello = {};\nthrow new Error("no database here");`);
    const { child, said, find } = start(folder);
    try {
      const { error } = await said("broken");
      assert.match(String((error as Error).message), /no database here \(jobs\/hello\.mts:2\)$/);
      assert.equal(find("dashboard"), undefined);

      writeHandler(handler, "process.exit(7);");
      const { url } = await said("dashboard");
      assert.notEqual(new URL(String(url)).port, "3811");
      await said("running");
      await using app = createEscapement({ store, jobs: [], log: silentLogger });
      const { id } = await app.enqueue(hello, { name: "Ada" });
      assert.equal((await said("ended"))["how"], "exit code 7");
      await app.cancel(id);

      writeHandler(handler, "return process.pid;");
      await said("running", 2);
      const pid = Number(await resultOf(app, "Bob"));
      assert(isAlive(pid));
      child.kill("SIGKILL");
      await until("the app has ended", () => !isAlive(pid));
    } finally {
      child.kill("SIGKILL");
      other.close();
    }
  });

  test("a port that is taken ends it: no change of a source could help", async () => {
    const { folder } = await project();
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = other.address() as AddressInfo;
      const { code, stdout, stderr } = await escapement(folder, "dev", "--port", String(port));
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(
        stderr,
        /^escapement: cannot listen on .*EADDRINUSE.*; choose another port with --port \[invalid-option\]$/m,
      );
    } finally {
      other.close();
    }
  });

  test("without a config there is nothing to run", async () => {
    const folder = scratchFolder("dev");
    const none = await escapement(folder, "dev");
    assert.deepEqual([none.code, none.stdout], [2, ""]);
    assert.match(
      none.stderr,
      /there is nothing to run: .+ has no config file; make one with "escapement init"/,
    );
    const missing = await escapement(folder, "dev", "--config", "missing.ts", "--json");
    assert.equal(missing.code, 2);
    assert.match(JSON.parse(missing.stderr).error.message, /there is no config file .+missing\.ts/);
  });
});
