import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import { after, describe, test } from "node:test";
import { sleepAwake, systemClock } from "../../clock.ts";
import type { PublishResult } from "../../message/transport.ts";
import { newMessage, openTransport } from "../../testing/transports/scene.ts";
import { type HttpOptions, http } from "./route.ts";
import { secret } from "./test/place.ts";

const servers: (Server | TcpServer)[] = [];
after(() => {
  for (const server of servers) {
    if ("closeAllConnections" in server) server.closeAllConnections();
    server.close();
  }
});

async function listen(handle: RequestListener, host = "127.0.0.1"): Promise<string> {
  const server = createServer(handle);
  servers.push(server);
  server.listen(0, host);
  await once(server, "listening");
  return `http://${host.includes(":") ? `[${host}]` : host}:${(server.address() as AddressInfo).port}/`;
}

async function publishTo(
  url: string,
  options: Partial<HttpOptions> = {},
  timeoutMs = 10_000,
): Promise<PublishResult> {
  const route = http({ url, secret, allow: ["127.0.0.1"], ...options });
  const transport = await openTransport(route);
  const [result] = await transport.publish([newMessage(route.destination)], { timeoutMs });
  await transport.close();
  assert(result !== undefined);
  return result;
}

const answering = (status: number, headers: Record<string, string> = {}, body: string | Buffer = "") =>
  listen((request, response) => {
    request.resume().once("end", () => response.writeHead(status, headers).end(body));
  });

describe("what an answer means", () => {
  for (const status of [200, 201, 202, 204]) {
    test(`${status}: acknowledged`, async () => {
      assert.equal((await publishTo(await answering(status))).kind, "acknowledged");
    });
  }

  for (const status of [429, 503]) {
    test(`${status}: refused, for as long as it says`, async () => {
      const soon = await publishTo(await answering(status, { "retry-after": "7" }));
      assert(soon.kind === "refused" && !soon.permanent);
      assert.equal(soon.retryAfterMs, 7_000);
      const date = new Date(Date.now() + 60_000).toUTCString();
      const later = await publishTo(await answering(status, { "retry-after": date }));
      assert(later.kind === "refused" && (later.retryAfterMs ?? 0) > 50_000);
      const silent = await publishTo(await answering(status));
      assert(silent.kind === "refused" && !silent.permanent && silent.retryAfterMs === undefined);
      const nonsense = await publishTo(await answering(status, { "retry-after": "soon" }));
      assert(nonsense.kind === "refused" && nonsense.retryAfterMs === undefined);
    });
  }

  for (const status of [400, 401, 403, 404, 409, 410, 413, 422]) {
    test(`${status}: refused for good, with what it said`, async () => {
      const result = await publishTo(await answering(status, {}, "no\nsuch\u0007 thing"));
      assert(result.kind === "refused" && result.permanent);
      assert.match(result.error.message, new RegExp(`answered ${status}: no such thing$`));
    });
  }

  const said: readonly (readonly [what: string, body: string | Buffer, kept: string])[] = [
    ["letters of every alphabet stay", "Rechnung für Ölmühle: 世界  👍", "Rechnung für Ölmühle: 世界  👍"],
    ["control characters do not", "a\r\n\tb\u001b[31m\u0000 \u0085c\u2028d\u007f", "a b [31m c d"],
    ["no half of a character at the end", `${"x".repeat(299)}👍`, "x".repeat(299)],
    ["a character that fits stays", `${"x".repeat(298)}👍👍`, `${"x".repeat(298)}👍`],
    ["bytes that are no text", Buffer.from([0x66, 0xfc, 0x72]), "f\ufffdr"],
  ];
  for (const [what, body, kept] of said) {
    test(`what is kept of a body: ${what}`, async () => {
      const result = await publishTo(await answering(422, {}, body));
      assert(result.kind === "refused");
      assert.equal(result.error.message.split("answered 422: ")[1], kept);
      assert(result.error.message.isWellFormed());
    });
  }

  for (const status of [408, 425]) {
    test(`${status}: refused, and it may come again`, async () => {
      const result = await publishTo(await answering(status));
      assert(result.kind === "refused" && !result.permanent);
    });
  }

  for (const status of [500, 502, 504, 599]) {
    test(`${status}: ambiguous`, async () => {
      assert.equal((await publishTo(await answering(status))).kind, "ambiguous");
    });
  }

  test("no answer in time: ambiguous", async () => {
    const url = await listen(() => {});
    assert.equal((await publishTo(url, { requestTimeout: 200 })).kind, "ambiguous");
    assert.equal((await publishTo(url, {}, 200)).kind, "ambiguous");
  });

  test("nobody listens, or nobody knows the name: refused", async () => {
    for (const url of ["http://127.0.0.1:1/", "http://nobody.invalid/"]) {
      const result = await publishTo(url);
      assert(result.kind === "refused" && !result.permanent, JSON.stringify(result));
    }
  });

  test("connected, and never secured: refused, since nothing was sent", async () => {
    const silent = createTcpServer();
    servers.push(silent);
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const url = `https://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
    const result = await publishTo(url, { requestTimeout: 300 });
    assert(result.kind === "refused" && !result.permanent);
  });

  test("closed after the request was read: ambiguous", async () => {
    const url = await listen((request) => request.resume().once("end", () => request.socket.destroy()));
    assert.equal((await publishTo(url)).kind, "ambiguous");
  });

  test("closed after a hint that an answer will come: ambiguous", async () => {
    const url = await listen((request, response) => {
      response.writeEarlyHints({ link: "</style.css>; rel=preload" }, () => request.socket.destroy());
    });
    assert.equal((await publishTo(url)).kind, "ambiguous");
  });

  test("a kept connection that was closed meanwhile is not used, and one that closes under a request is not tried again", async () => {
    let requests = 0;
    const url = await listen((request, response) => {
      requests += 1;
      if (requests === 3) return void request.socket.destroy();
      response.end(() => requests === 1 && request.socket.destroySoon());
    });
    const transport = await openTransport(http({ url, secret, allow: ["127.0.0.1"], concurrency: 1 }));
    const kinds: string[] = [];
    for (let turn = 0; turn < 4; turn++) {
      const [result] = await transport.publish([newMessage(url)], { timeoutMs: 5_000 });
      kinds.push(result?.kind ?? "");
      await sleepAwake(systemClock, 50);
    }
    await transport.close();
    assert.deepEqual(kinds, ["acknowledged", "acknowledged", "ambiguous", "acknowledged"]);
    assert.equal(requests, 4);
  });

  test("an answer without an end is not read to its end", async () => {
    let written = 0;
    const url = await listen((_request, response) => {
      response.writeHead(200);
      const more = (): void => {
        if (response.destroyed) return;
        written += 16_384;
        response.write("x".repeat(16_384), more);
      };
      more();
    });
    assert.equal((await publishTo(url)).kind, "acknowledged");
    assert(written < 64 * 1_048_576);
  });

  test("an answer that stops in the middle counts by its status", async () => {
    const url = await listen((_request, response) => void response.writeHead(200).write("x"));
    assert.equal((await publishTo(url, { requestTimeout: 300 })).kind, "acknowledged");
  });
});

describe("the request", () => {
  test("it carries the idempotency key, three times, and headers of one's own", async () => {
    const seen = Promise.withResolvers<Record<string, unknown>>();
    const url = await listen((request, response) => {
      seen.resolve({ method: request.method, ...request.headers });
      response.end();
    });
    const route = http({
      url,
      secret,
      allow: ["127.0.0.1"],
      headers: { Authorization: "Bearer x", "User-Agent": "mine" },
    });
    const transport = await openTransport(route);
    await transport.publish([newMessage(url, { id: "some-key" })], { timeoutMs: 5_000 });
    await transport.close();
    const headers = await seen.promise;
    assert.equal(headers["method"], "POST");
    assert.equal(headers["idempotency-key"], "some-key");
    assert.equal(headers["webhook-id"], "some-key");
    assert.equal(headers["content-type"], "application/json");
    assert.equal(headers["authorization"], "Bearer x");
    assert.equal(headers["user-agent"], "mine");
  });

  test("at most `concurrency` at a time, over connections that are kept", async () => {
    let running = 0;
    let most = 0;
    const full = Promise.withResolvers<void>();
    const sockets = new Set<unknown>();
    const url = await listen((request, response) => {
      sockets.add(request.socket);
      running += 1;
      most = Math.max(most, running);
      if (running === 3) full.resolve();
      void full.promise.then(() =>
        setTimeout(() => {
          running -= 1;
          response.end();
        }, 5),
      );
    });
    const transport = await openTransport(http({ url, secret, allow: ["127.0.0.1"], concurrency: 3 }));
    const batch = () => Array.from({ length: 20 }, () => newMessage(url));
    await Promise.all([1, 2].map(() => transport.publish(batch(), { timeoutMs: 60_000 })));
    await transport.close();
    assert.equal(most, 3);
    assert(sockets.size <= 3);
  });

  test("what follows a message of the same key waits for it, and is not sent when that is unsure", async () => {
    const ids: string[] = [];
    const url = await listen((request, response) => {
      const id = String(request.headers["idempotency-key"]);
      ids.push(id);
      request.resume();
      response.writeHead(id === "a2" ? 500 : id === "b1" ? 400 : 200).end();
    });
    const transport = await openTransport(http({ url, secret, allow: ["127.0.0.1"] }));
    const messages = ["a1", "a2", "a3", "b1", "b2"].map((id) => newMessage(url, { id, key: id[0] ?? "" }));
    const results = await transport.publish(messages, { timeoutMs: 10_000 });
    await transport.close();
    assert.deepEqual(
      results.map((result) => (result.kind === "refused" ? [result.kind, result.permanent] : result.kind)),
      ["acknowledged", "ambiguous", ["refused", false], ["refused", true], "acknowledged"],
    );
    assert.deepEqual(ids.toSorted(), ["a1", "a2", "b1", "b2"]);
  });
});

describe("redirects", () => {
  test("307 and 308 are followed with the body and all headers within a host", async () => {
    const seen: unknown[] = [];
    for (const status of [307, 308]) {
      const url = await listen((request, response) => {
        if (request.url === "/") return void response.writeHead(status, { location: "/there" }).end();
        const {
          authorization,
          "webhook-signature": signature,
          "escapement-signature": facts,
        } = request.headers;
        seen.push(request.url, authorization, String(signature).slice(0, 3), String(facts).slice(0, 3));
        response.end();
      });
      assert.equal((await publishTo(url, { headers: { authorization: "x" } })).kind, "acknowledged");
    }
    const expected = ["/there", "x", "v1,", "v1,"];
    assert.deepEqual(seen, [...expected, ...expected]);
  });

  test("another host gets no job, no signature and no header: a redirect to it is refused for good", async () => {
    let calls = 0;
    const count: RequestListener = (_request, response) => {
      calls += 1;
      response.end();
    };
    const [port, name] = [await listen(count), (await listen(count)).replace("127.0.0.1", "localhost")];
    for (const location of [port, name, "https://other.example/"]) {
      const result = await publishTo(await answering(307, { location }), { allow: ["127.0.0.0/8", "::1"] });
      assert(result.kind === "refused" && result.permanent, location);
      assert.match(result.error.message, /redirected to .*change the url of the route/);
    }
    assert.equal(calls, 0);
  });

  test("others, too many, and a scheme that is none, are refused for good", async () => {
    const target = await answering(200);
    for (const status of [301, 302, 303]) {
      const result = await publishTo(await answering(status, { location: target }));
      assert(result.kind === "refused" && result.permanent);
    }
    const loop = await listen((_request, response) => response.writeHead(307, { location: "/again" }).end());
    const looped = await publishTo(loop, { maxRedirects: 2 });
    assert(looped.kind === "refused" && looped.permanent);
    assert.match(looped.error.message, /more than 2 times/);
    const strange = await publishTo(await answering(307, { location: "file:///etc/passwd" }));
    assert(strange.kind === "refused" && strange.permanent);
  });

  test("a redirect to an address that is not allowed is refused, and nothing is sent there", async () => {
    let calls = 0;
    const inside = await listen((_request, response) => {
      calls += 1;
      response.end();
    }, "127.0.0.2");
    const { port } = new URL(inside);
    for (const location of [inside, `http://[::ffff:127.0.0.2]:${port}/`, `http://2130706434:${port}/`]) {
      const result = await publishTo(await answering(307, { location }));
      assert(result.kind === "refused" && result.permanent, location);
      assert.match(result.error.message, /redirected to|not a public address/);
    }
    assert.equal(calls, 0);
    assert.equal((await publishTo(inside, { allow: ["127.0.0.0/8"] })).kind, "acknowledged");
  });
});

describe("options that would not work are refused", () => {
  const bad: readonly (readonly [what: string, options: Partial<HttpOptions>, says: RegExp])[] = [
    ["no URL", { url: "nonsense" }, /http or https URL/],
    ["another scheme", { url: "ftp://host/" }, /http or https URL/],
    ["credentials in the URL", { url: "https://user:hidden@host/" }, /put credentials into headers/],
    ["a short secret", { secret: "whsec_c2hvcnQ=" }, /24 to 64 random bytes/],
    ["a bare secret", { secret: "hunter2" }, /24 to 64 random bytes/],
    ["no secret", { secret: [] }, /1 to 8 secrets/],
    ["a header that it sets itself", { headers: { "Webhook-Id": "x" } }, /does not set itself/],
    ["a header that the connection needs", { headers: { Expect: "100-continue" } }, /does not set itself/],
    ["a header with a line break", { headers: { "x-a": "b\r\nc: d" } }, /printable ASCII/],
    ["a name instead of an address", { allow: ["localhost"] }, /addresses or ranges/],
    ["too many bits", { allow: ["10.0.0.0/33"] }, /addresses or ranges/],
  ];
  for (const [what, options, says] of bad) {
    test(what, () => {
      assert.throws(
        () => http({ url: "https://host/", secret, ...options }),
        (error: Error) => {
          assert.match(error.message, says);
          assert.doesNotMatch(error.message, /hunter2|hidden|c2hvcnQ/);
          return true;
        },
      );
    });
  }
});
