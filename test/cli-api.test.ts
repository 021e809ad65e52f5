import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { before, describe, test } from "node:test";
import { configure, escapement, main } from "./command.ts";
import { scratchFolder } from "./scratch.ts";

const secret = "0123456789abcdef0123456789abcdef";

describe("escapement api and escapement dashboard", () => {
  const folder = scratchFolder();
  before(async () => {
    configure(folder, `defineJob({ name: "mail", queue: "post" })`);
    assert.equal((await escapement(folder, "migrate")).code, 0);
  });

  /** Runs a command, asks something of it, and stops it. */
  async function serving(
    [command = "api", ...args]: readonly string[],
    env: object,
    ask: (url: string) => Promise<void>,
  ): Promise<void> {
    const child = spawn(process.execPath, [main, command, "--port", "0", "--json", ...args], {
      cwd: folder,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const { url } = JSON.parse(await firstLine(child));
      await ask(url);
    } finally {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      assert.deepEqual(await ended, [0, null]);
    }
  }

  test("serves this machine without tokens, and nobody who comes by another name", async () => {
    await serving(["api"], {}, async (url) => {
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
      const made = await fetch(`${url}/jobs`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ name: "mail", input: { to: "ann" }, id: "one" }),
      });
      assert.deepEqual([made.status, await made.json()], [201, { id: "one", outcome: "added" }]);
      const { port } = new URL(url);
      assert.match(await raw(Number(port), "GET /jobs HTTP/1.1\r\nHost: evil.example"), /^HTTP\/1.1 403 /);
      assert.match(await raw(Number(port), "GET /jobs HTTP/1.1\r\nHost: a b"), /^HTTP\/1.1 400 /);
      assert.match(
        await raw(Number(port), "GET //evil.example/jobs HTTP/1.1\r\nHost: localhost"),
        /^HTTP\/1.1 4\d\d /,
      );
    });
    const audit = await escapement(folder, "audit", "--json");
    assert.match(audit.stdout, /"actor":"local","action":"enqueue","target":"job:one"/);
  });

  test("takes tokens from the environment and a file, and slows guessing down by the peer's address", async () => {
    const file = join(folder, "tokens");
    writeFileSync(file, `# who watches\nread:grafana:file-${secret}\n`);
    chmodSync(file, 0o600);
    const env = { ESCAPEMENT_API_TOKENS: `admin:ann:${secret}` };
    await serving(["api", "--tokens-file", file, "--base-path", "/ops"], env, async (url) => {
      const status = async (token: string, method = "GET", path = "/queues"): Promise<number> => {
        const headers = { Authorization: `Bearer ${token}`, "X-Forwarded-For": `10.0.0.${Math.random()}` };
        return (await fetch(url + path, { method, headers })).status;
      };
      assert.equal((await fetch(`${url}/queues`)).status, 401);
      assert.equal(await status(`file-${secret}`), 200);
      assert.equal(await status(`file-${secret}`, "POST", "/queues/post/pause"), 403);
      assert.equal(await status(secret, "POST", "/queues/post/pause"), 200);
      for (let n = 0; n < 5; n += 1) assert.equal(await status(`wrong-${secret}`), 401);
      assert.equal(await status(`wrong-${secret}`), 429);
      assert.equal(await status(secret), 200, "a valid token never waits");
    });
  });

  test("dashboard: serves the page with the API below it, as closed as the API is by itself", async () => {
    await serving(["dashboard"], {}, async (url) => {
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
      const page = await fetch(`${url}/jobs`, { headers: { Accept: "text/html" } });
      assert.match(
        await page.text(),
        /<base href="\/" \/>[\s\S]*<script type="module" src="assets\/app\.js">/,
      );
      assert.equal(
        (await fetch(`${url}/assets/app.js`)).headers.get("content-type"),
        "text/javascript; charset=utf-8",
      );
      assert.equal(JSON.parse(await (await fetch(`${url}/api/me`)).text()).role, "admin");
      const { port } = new URL(url);
      assert.match(await raw(Number(port), "GET /api/me HTTP/1.1\r\nHost: evil.example"), /^HTTP\/1.1 403 /);
    });
    const env = { ESCAPEMENT_API_TOKENS: `read:ann:${secret}` };
    await serving(["dashboard", "--base-path", "/ops/escapement"], env, async (url) => {
      assert.match(url, /\/ops\/escapement$/);
      assert.match(
        await (await fetch(url)).text(),
        /<base href="\/ops\/escapement\/" \/>/,
        "by way of its slash",
      );
      assert.equal((await fetch(`${url}/api/me`)).status, 401);
      const headers = { Authorization: `Bearer ${secret}` };
      assert.equal((await fetch(`${url}/api/me`, { headers })).status, 200);
      assert.equal((await fetch(`${url}/api/queues/post/pause`, { method: "POST", headers })).status, 403);
    });
    const open = await escapement(folder, "dashboard", "--port", "0", "--host", "0.0.0.0");
    assert.match(open.stderr, /expected tokens, since 0\.0\.0\.0 can be reached by others/);
  });

  test("refuses what would be open to all, and says what is wrong without repeating a token", async () => {
    const cases: [string[], number, RegExp][] = [
      [["--host", "0.0.0.0"], 2, /expected tokens, since 0\.0\.0\.0 can be reached by others/],
      [["--tokens-file", "missing"], 2, /cannot read missing/],
      [["--base-path", "x"], 2, /expected basePath/],
      [["--store", "sqlite:missing.db"], 1, /missing\.db/],
    ];
    for (const [args, expected, message] of cases) {
      const { code, stderr } = await escapement(folder, "api", "--port", "0", ...args);
      assert.equal(code, expected, stderr);
      assert.match(stderr, message);
    }
    writeFileSync(join(folder, "bad-tokens"), secret);
    const bad = await escapement(folder, "api", "--tokens-file", "bad-tokens");
    assert.match(bad.stderr, /expected entry 1 of bad-tokens to be role:actor:token/);
    assert(!bad.stderr.includes(secret));
    const busy = createServer().listen(0, "127.0.0.1");
    await once(busy, "listening");
    const { port } = busy.address() as AddressInfo;
    const taken = await escapement(folder, "api", "--port", String(port));
    busy.close();
    assert.match(
      taken.stderr,
      /cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE.*; choose another port with --port/,
    );
  });
});

async function firstLine(child: ChildProcess): Promise<string> {
  assert(child.stdout);
  const lines = createInterface({ input: child.stdout });
  for await (const line of lines) return line;
  throw new Error("it ended without a word");
}

/** A request that fetch would not send. */
async function raw(port: number, head: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.end(`${head}\r\nConnection: close\r\n\r\n`);
  let text = "";
  for await (const chunk of socket) text += chunk;
  return text;
}
