import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createEscapement } from "../index.ts";
import { createApi } from "./create-api.ts";
import { FailedLogins } from "./failed-logins.ts";
import type { ApiOptions, Identity } from "./options.ts";
import { apiTokens, openSession, tokens } from "./test/api-session.ts";
import { parseTokens } from "./tokens-source.ts";

describe("the API is closed", () => {
  test("it is not made without credentials, with two kinds of them, or with weak ones", async () => {
    await using app = createEscapement({ store: "memory:" });
    const authorize = () => null;
    const refused: [ApiOptions, RegExp][] = [
      [{}, /expected one of tokens, authorize and insecure/],
      [{ tokens: [] }, /got none/],
      [{ tokens: apiTokens, authorize }, /2 of them/],
      [{ tokens: [{ token: "short", actor: "ann", role: "read" }] }, /token of ann to have at least 24/],
      [{ insecure: true, basePath: "x" }, /expected basePath/],
      [{ insecure: true, origins: ["https://a.example/path"] }, /each of origins/],
      [{ insecure: true, redact: [""] }, /each of redact/],
      [{ insecure: true, tokes: [] } as ApiOptions, /unknown option "tokes"/],
    ];
    for (const [options, message] of refused) {
      assert.throws(
        () => createApi(app, options),
        (error: Error) => message.test(error.message) && !error.message.includes("short"),
      );
    }
  });

  test("without credentials it answers only what is asked directly for this machine", async () => {
    const { api, app } = openSession({ insecure: true });
    const status = async (url: string, headers = {}) => (await api(new Request(url, { headers }))).status;
    for (const host of ["localhost:3000", "127.0.0.1", "[::1]:80"])
      assert.equal(await status(`http://${host}/jobs`), 200, host);
    // A name that leads here, as a page of another site can have one.
    for (const host of ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1"])
      assert.equal(await status(`http://${host}/jobs`), 403, host);
    for (const name of ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
      assert.equal(await status("http://localhost/jobs", { [name]: "127.0.0.1" }), 403, name);
    assert.equal(await status("http://localhost/jobs", { "Sec-Fetch-Site": "cross-site" }), 403);
    await app.stop();
  });

  test("a page of another site changes nothing, whatever it sends along", async () => {
    const { ask, app } = openSession({ tokens: apiTokens, origins: ["https://ops.example"] });
    const pause = async (headers: Record<string, string>) =>
      (await ask("POST /queues/post/pause", { headers })).status;
    assert.equal(await pause({ Origin: "https://evil.example" }), 403);
    assert.equal(await pause({ Origin: "null" }), 403);
    assert.equal(await pause({ "Sec-Fetch-Site": "cross-site" }), 403);
    assert.equal(await pause({ "Sec-Fetch-Site": "same-site" }), 403);
    assert.equal(await pause({ Origin: "http://localhost", "Sec-Fetch-Site": "cross-site" }), 403);
    assert.deepEqual(await app.queues(), []);
    assert.equal(await pause({ Origin: "http://localhost", "Sec-Fetch-Site": "same-origin" }), 200);
    assert.equal(await pause({ Origin: "https://localhost" }), 200, "a proxy took the s off");
    assert.equal(await pause({ Origin: "https://ops.example", "Sec-Fetch-Site": "cross-site" }), 200);
    assert.equal(await pause({}), 200, "a program says neither");
    await app.stop();
  });

  test("wrong tokens are slowed down per address; others, and those who send nothing, are not", async () => {
    const { ask, app } = openSession();
    for (let n = 0; n < 10; n += 1) await ask("GET /jobs", { token: null, address: "10.0.0.1" });
    const wrong = { token: "wrong-0123456789abcdef0123456789", address: "10.0.0.1" };
    for (let n = 0; n < 5; n += 1) assert.equal((await ask("GET /jobs", wrong)).status, 401);
    const slowed = await ask("GET /jobs", wrong);
    assert.deepEqual([slowed.status, slowed.headers.get("retry-after")], [429, "1"]);
    assert.equal((await ask("GET /jobs", { ...wrong, address: "10.0.0.2" })).status, 401);
    assert.equal((await ask("GET /jobs", { token: null, address: "10.0.0.1" })).status, 401, "no guess");
    await app.stop();
  });

  test("a valid token passes, however many wrong ones come from its address, and changes nothing for those", async () => {
    const { ask, app } = openSession();
    const address = "10.0.0.1";
    const wrong = { token: "wrong-0123456789abcdef0123456789", address };
    for (let n = 0; n < 20; n += 1) await ask("GET /jobs", wrong);
    assert.equal((await ask("GET /jobs", { address })).status, 200);
    assert.equal((await ask("GET /jobs", wrong)).status, 429);
    await app.stop();
  });

  test("authorize is not asked while an address waits", async () => {
    let asked = 0;
    let identity: Identity | null = null;
    const authorize = () => {
      asked += 1;
      return identity;
    };
    const { ask, app } = openSession({ authorize });
    const address = "10.0.0.1";
    for (let n = 0; n < 5; n += 1) assert.equal((await ask("GET /jobs", { address })).status, 401);
    identity = { actor: "ann", role: "read" };
    assert.equal((await ask("GET /jobs", { address })).status, 429);
    assert.equal(asked, 5);
    assert.equal((await ask("GET /jobs", { address: "10.0.0.2" })).status, 200);
    await app.stop();
  });

  test("waits double up to a minute, end, are forgotten, and do not fill the memory", () => {
    let now = 0;
    const failed = new FailedLogins(() => now);
    for (let n = 0; n < 5; n += 1) failed.failed("a");
    assert.equal(failed.waitMs("a"), 1_000);
    failed.failed("a");
    assert.equal(failed.waitMs("a"), 2_000);
    for (let n = 0; n < 50; n += 1) failed.failed("a");
    assert.equal(failed.waitMs("a"), 60_000);
    now += 60_000;
    assert.equal(failed.waitMs("a"), 0);
    now += 15 * 60_000;
    failed.failed("a");
    assert.equal(failed.waitMs("a"), 0);
    for (let n = 0; n < 5; n += 1) failed.failed("first");
    for (let n = 0; n < 10_000; n += 1) failed.failed(`other-${n}`);
    assert.equal(failed.waitMs("first"), 0);
  });

  test("tokens are read from lines, and a wrong line is not repeated", () => {
    const text = `# ops\nread:grafana:${tokens.read}\n\nadmin:ann:${tokens.admin},operate:ci:x`;
    assert.deepEqual(
      parseTokens(text, "it").map(({ role, actor }) => `${role} ${actor}`),
      ["read grafana", "admin ann", "operate ci"],
    );
    assert.throws(
      () => parseTokens("just-a-secret-token", "it"),
      (error: Error) => /entry 1 of it/.test(error.message) && !error.message.includes("secret"),
    );
  });

  test("bodies are JSON, bounded, and not nested without end", async () => {
    const { ask, app } = openSession({ tokens: apiTokens, maxBodyBytes: 2_048 });
    const post = async (body: string, headers = {}) =>
      (await ask("POST /jobs", { body, headers })).answer["code"];
    assert.equal(await post("{"), "invalid-request");
    assert.equal(await post("x=1", { "Content-Type": "application/x-www-form-urlencoded" }), "not-json");
    assert.equal(await post("{}", { "Content-Type": "text/plain" }), "not-json");
    assert.equal(await post(JSON.stringify({ name: "mail", input: "x".repeat(2_048) })), "body-too-large");
    assert.equal(
      await post(`{"name":"mail","input":${"[".repeat(300)}${"]".repeat(300)}}`),
      "invalid-request",
    );
    assert.equal(await post('{"name":"mail","id":"a\\u0000b"}'), "invalid-request");
    assert.equal(await post('{"name":"nobody"}'), "unknown-job");
    assert.equal(await post("[]"), "invalid-request");
    assert.equal(await app.count(), 0);
    await app.stop();
  });

  test("pages, scans and spans are bounded, and unknown fields are refused by name", async () => {
    const { ask, app } = openSession();
    const refused: [string, RegExp][] = [
      ["/jobs?limit=1001", /limit/],
      ["/jobs?limit=-1", /limit/],
      ["/jobs?lookAt=100001", /lookAt/],
      ["/jobs?stat=dead", /"stat"/],
      ["/jobs?state=gone", /state/],
      ["/jobs?since=yesterday", /since/],
      ["/jobs?since=1h&until=2h", /since to be before until/],
      ["/nodes?x=1", /"x"/],
      ["/schedules/n/occurrences?from=2020-01-01T00:00:00Z", /366 days/],
      [`/jobs?${"name=a&".repeat(101)}`, /name/],
      [`/jobs/${"x".repeat(256)}`, /id/],
      ["/jobs?cursor=rubbish", /cursor/],
    ];
    for (const [path, message] of refused) {
      const { status, answer } = await ask(`GET ${path}`);
      assert.equal(status, 400, path);
      assert.match(answer["detail"] ?? "", message, path);
    }
    await app.stop();
  });

  test("every answer says that nothing else may be made of it", async () => {
    const { ask, app } = openSession();
    for (const route of ["GET /jobs", "GET /nothing", "PUT /jobs"]) {
      const { headers } = await ask(route);
      assert.equal(headers.get("x-content-type-options"), "nosniff", route);
      assert.match(headers.get("content-security-policy") ?? "", /default-src 'none'/);
      assert.match(headers.get("cache-control") ?? "", /no-store|no-cache/);
      assert.equal(headers.get("access-control-allow-origin"), null);
    }
    await app.stop();
  });

  test("an answer that has not changed is not sent again", async () => {
    const { ask, app } = openSession();
    const first = await ask("GET /jobs");
    const tag = first.headers.get("etag") ?? "";
    assert.notEqual(tag, "");
    const again = await ask("GET /jobs", { headers: { "If-None-Match": tag } });
    assert.deepEqual([again.status, again.text], [304, ""]);
    await app.enqueue("mail", { to: "ann" });
    assert.equal((await ask("GET /jobs", { headers: { "If-None-Match": tag } })).status, 200);
    await app.stop();
  });
});

describe("what is masked", () => {
  const redact = ["password", /\S+@example\.com/];
  const secrets = /hunter2|ann@example/;

  test("does not leave in any answer, error or event, and cannot be searched for or written back", async () => {
    const { ask, app, api } = openSession({ tokens: apiTokens, redact });
    const input = {
      to: "nobody",
      password: "hunter2",
      deep: [{ Password: { a: "hunter2" }, mail: "ann@example.com" }],
    };
    await app.start();
    const { id } = await app.enqueue("mail", input);
    await app.result(id, { timeout: "30s" }).catch(() => {});
    await app.enqueue("mail", input, { id: "later", delay: "1h", tags: ["ann@example.com"] });
    await app.schedule("nightly", { cron: "0 3 * * *" }, "mail", input);
    await ask("POST /jobs/cancel", {
      body: { filter: { text: "ann@example.com" }, reason: "for ann@example.com" },
    });
    const routes = [
      `/jobs/${id}`,
      "/jobs/later",
      `/jobs/${id}/result`,
      "/jobs",
      "/failures",
      "/overview",
      "/schedules",
    ];
    for (const path of [...routes, "/schedules/nightly", "/audit", "/tasks"]) {
      const { status, text } = await ask(`GET ${path}`);
      assert.equal(status, 200, path);
      assert.doesNotMatch(text, secrets, path);
    }
    const { answer } = await ask(`GET /jobs/${id}`);
    const { job } = answer as unknown as {
      job: { id: string; error: { message: string }; input: typeof input };
    };
    assert.equal(job.id, id);
    assert.equal(job.input.password, "[redacted]");
    assert.match(job.error.message, /password=\[redacted\]/);
    const events = await api(
      new Request(`http://localhost/jobs/${id}/events`, {
        headers: { Authorization: `Bearer ${tokens.read}` },
      }),
    );
    const text = await events.text();
    assert.match(text, /event: job\n/);
    assert.doesNotMatch(text, secrets);
    const refused = await ask("POST /jobs", { body: { name: "ann@example.com" } });
    assert.doesNotMatch(refused.text, secrets);
    const search = { token: tokens.read };
    assert.equal((await ask("GET /jobs?text=hunter", search)).status, 403);
    assert.equal((await ask("GET /failures?error=hunter", search)).status, 403);
    assert.equal((await ask("GET /jobs?text=hunter")).status, 200);
    const back = await ask("PATCH /jobs/later", { body: { input: job.input } });
    assert.equal(back.status, 400);
    await app.stop();
  });
});
