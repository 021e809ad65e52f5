import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { apiTokens, mail, tokens } from "../api/test/api-session.ts";
import { createEscapement } from "../index.ts";
import { silentLogger } from "../log.ts";
import { createDashboard } from "./index.ts";

const app = createEscapement({ store: "memory:", jobs: [mail], log: silentLogger });
after(() => app.stop());
const mounted = createDashboard(app, { tokens: apiTokens, basePath: "/ops/escapement" });

async function ask(path: string, init: RequestInit = {}, dashboard = mounted) {
  const response = await dashboard(new Request(`http://localhost${path}`, init));
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** What the page loads: addresses relative to its base. */
function loadedBy(page: string): string[] {
  const [, base = ""] = /<base href="([^"]*)"/.exec(page) ?? [];
  return [...page.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, path]) => `${base}${path}`);
}

describe("the page of the dashboard", () => {
  test("it loads its script, its styles and its icon from below its mount, each with its type", async () => {
    const page = await ask("/ops/escapement/");
    assert.deepEqual([page.status, page.headers.get("content-type")], [200, "text/html; charset=utf-8"]);
    const files = loadedBy(page.text);
    const types = await Promise.all(
      files.map(async (path) => {
        const { status, headers, text } = await ask(path);
        assert.equal(status, 200, path);
        assert.notEqual(text, "");
        return headers.get("content-type");
      }),
    );
    assert.deepEqual(types.sort(), [
      "image/svg+xml",
      "text/css; charset=utf-8",
      "text/javascript; charset=utf-8",
    ]);
    assert.ok(files.every((path) => path.startsWith("/ops/escapement/assets/")));
  });

  test("a screen's own address is the page, and one without its slash leads to it", async () => {
    const { text } = await ask("/ops/escapement/");
    for (const path of ["jobs", "jobs/a%2Fb?x=1", "schedules/nightly", "assets", "apix", "nonsense"])
      assert.equal((await ask(`/ops/escapement/${path}`)).text, text, path);
    const bare = await ask("/ops/escapement?since=1h");
    assert.deepEqual([bare.status, bare.headers.get("location")], [308, "/ops/escapement/?since=1h"]);
  });

  test("without a prefix it stands at the root", async () => {
    const atRoot = createDashboard(app, { tokens: apiTokens });
    const { text } = await ask("/", {}, atRoot);
    const files = loadedBy(text);
    assert.ok(files.length > 0 && files.every((path) => path.startsWith("/assets/")), text);
    for (const path of files) assert.equal((await ask(path, {}, atRoot)).status, 200, path);
    assert.equal((await ask("/api/jobs", {}, atRoot)).status, 401);
  });

  test("nothing outside of the page is served, however a path is written", async () => {
    for (const path of [
      "/",
      "/ops",
      "/ops/escapementx/",
      "/ops/other/assets/app.js",
      "/ops/escapement/assets/",
      "/ops/escapement/assets/index.html",
      "/ops/escapement/assets/app.js.map",
      "/ops/escapement/assets/..%2f..%2fpackage.json",
      "/ops/escapement/assets/%2e%2e%2f%2e%2e%2fpackage.json",
      "/ops/escapement/assets/..\\..\\..\\package.json",
      "/ops/escapement/assets/__proto__",
      "/ops/escapement/assets/constructor",
      "/ops/escapement/assets//etc/passwd",
      "/ops/escapement/assets/app.js%00.css",
    ]) {
      const { status, text } = await ask(path);
      assert.deepEqual([status, text], [404, "There is no such file.\n"], path);
    }
    const climbing = await ask("/ops/escapement/../../package.json");
    assert.equal(climbing.status, 404);
  });

  test("it allows no inline script or style, no other site and no frame, and has neither", async () => {
    const page = await ask("/ops/escapement/");
    const policy = page.headers.get("content-security-policy") ?? "";
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /script-src 'self'(;|$)/);
    assert.match(policy, /style-src 'self'(;|$)/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*|data:/);
    assert.doesNotMatch(page.text, /<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/i);
    assert.doesNotMatch(page.text, /https?:\/\//, "nothing from elsewhere");
    for (const path of ["", "assets/app.js", "assets/none"]) {
      const { headers } = await ask(`/ops/escapement/${path}`);
      assert.equal(headers.get("x-content-type-options"), "nosniff");
      assert.equal(headers.get("x-frame-options"), "DENY");
      assert.equal(headers.get("referrer-policy"), "no-referrer");
      assert.equal(headers.get("content-security-policy"), policy);
    }
  });

  test("HEAD has the headers of GET, what is known is not sent again, and nothing else is allowed", async () => {
    const path = "/ops/escapement/assets/app.js";
    const got = await ask(path);
    const head = await ask(path, { method: "HEAD" });
    assert.deepEqual([head.status, head.text], [200, ""]);
    assert.equal(head.headers.get("etag"), got.headers.get("etag"));
    assert.equal(got.headers.get("cache-control"), "no-cache");
    const headers = { "If-None-Match": got.headers.get("etag") ?? "" };
    const known = await ask(path, { headers });
    assert.deepEqual([known.status, known.text], [304, ""]);
    assert.equal((await ask(path, { headers: { "If-None-Match": '"other"' } })).status, 200);
    for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
      const refused = await ask(path, { method });
      assert.deepEqual([refused.status, refused.headers.get("allow")], [405, "GET, HEAD"], method);
    }
  });

  test("the script is below 150 kB, as it is sent by whoever compresses it", async () => {
    const { text } = await ask("/ops/escapement/assets/app.js");
    assert.ok(gzipSync(text).length < 150_000, `${gzipSync(text).length} bytes`);
  });
});

describe("the API below the page", () => {
  const as = (token: string): RequestInit => ({ headers: { Authorization: `Bearer ${token}` } });

  test("it is closed by default, as it is by itself", async () => {
    assert.throws(() => createDashboard(app, {}), /expected one of tokens, authorize and insecure/);
    assert.throws(() => createDashboard(app, { insecure: true, basePath: "x" }), /expected basePath/);
    const { status, headers } = await ask("/ops/escapement/api/jobs");
    assert.deepEqual([status, headers.get("content-type")], [401, "application/problem+json"]);
    assert.equal((await ask("/ops/escapement/api")).status, 401);
    const open = createDashboard(app, { insecure: true });
    assert.equal((await ask("/api/jobs", {}, open)).status, 200);
    assert.equal((await open(new Request("http://evil.example/api/jobs"))).status, 403);
  });

  test("roles decide at the server, whatever a page shows", async () => {
    const pause = async (token: string) =>
      (await ask("/ops/escapement/api/queues/post/pause", { ...as(token), method: "POST" })).status;
    assert.equal((await ask("/ops/escapement/api/jobs", as(tokens.read))).status, 200);
    assert.equal(await pause(tokens.read), 403);
    assert.deepEqual(await app.queues(), []);
    assert.equal(await pause(tokens.operate), 200);
    const me = JSON.parse((await ask("/ops/escapement/api/me", as(tokens.operate))).text);
    assert.deepEqual([me.actor, me.role, me.notice], ["operate-person", "operate", null]);
  });

  test("what everybody should know is told with who one is, and must be short", async () => {
    const told = createDashboard(app, { insecure: true, notice: "This is <b>staging</b>." });
    assert.equal(JSON.parse((await ask("/api/me", {}, told)).text).notice, "This is <b>staging</b>.");
    for (const notice of ["", "x".repeat(501), 7 as unknown as string])
      assert.throws(() => createDashboard(app, { insecure: true, notice }), /expected notice to be a string/);
  });
});
