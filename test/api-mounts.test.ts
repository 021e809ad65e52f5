import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";

const token = "0123456789abcdef0123456789abcdef";
process.env["OPS_TOKEN"] = token;
process.env["ESCAPEMENT_STORE"] = "memory:";
const { app, api } = await import("../examples/api/app.ts");
const { greet } = await import("../examples/api/client.ts");

/** Requests of a web-standard handler, as the servers of Hono and Next make them. */
async function webServer(
  handle: (request: Request) => Response | Promise<Response>,
): Promise<RequestListener> {
  const { getRequestListener } = await import("@hono/node-server");
  const listener = getRequestListener(handle, { overrideGlobalObjects: false });
  return (incoming, outgoing) => void listener(incoming, outgoing);
}

const mounts: Readonly<Record<string, () => Promise<Server>>> = {
  "node:http": async () => (await import("../examples/api/node-http.ts")).server,
  Express: async () => createServer((await import("../examples/api/express.ts")).server),
  async Fastify() {
    const { server } = await import("../examples/api/fastify.ts");
    await server.ready();
    return server.server;
  },
  async Hono() {
    const { server } = await import("../examples/api/hono.ts");
    return createServer(await webServer((request) => server.fetch(request)));
  },
  async Next() {
    const route = await import("../examples/api/next-route.ts");
    // Next calls the function of the method, with the parameters of the path.
    const call = (request: Request): Promise<Response> =>
      route[request.method as "GET"](request, { params: Promise.resolve({ path: ["jobs"] }) });
    return createServer(await webServer(call));
  },
};

describe("the HTTP API in the servers that people have", () => {
  before(() => app.start());
  after(async () => {
    api.close();
    await app.stop();
  });

  for (const [name, mount] of Object.entries(mounts)) {
    test(`${name}: reads, writes, refuses and streams`, async () => {
      const server = await mount();
      await once(server.listen(0, "127.0.0.1"), "listening");
      try {
        const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/escapement`;
        assert.equal(await greet(url, token, name), `Hello, ${name}!`);
        const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
        assert.equal((await fetch(`${url}/jobs`)).status, 401);
        assert.equal((await fetch(`${url}/jobs?state=succeeded,dead`, { headers })).status, 200);
        assert.equal((await fetch(`${url}/jobs/a%2Fb`, { headers })).status, 404);
        const pause = await fetch(`${url}/queues/post/pause`, {
          method: "POST",
          headers,
          body: '{"reason":"ü"}',
        });
        assert.deepEqual([pause.status, JSON.parse(await pause.text()).paused], [200, true]);
        const bearer = { Authorization: `Bearer ${token}` };
        const bare = await fetch(`${url}/queues/post/resume`, { method: "POST", headers: bearer });
        assert.deepEqual([bare.status, JSON.parse(await bare.text()).paused], [200, false], "without a body");
        // In chunks, without a length, and far too long.
        const endless = new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(65_536).fill(32)) });
        const init = { method: "POST", headers, body: endless, duplex: "half" } as const;
        const long = await fetch(`${url}/jobs`, init).catch(() => null);
        assert([413, undefined].includes(long?.status), "the server may hang up before it is heard");
        const changed = await fetch(`${url}/queues/post`, {
          method: "PATCH",
          headers,
          body: '{"concurrency":1}',
        });
        assert.equal(JSON.parse(await changed.text()).code, "forbidden");
        const nonsense = await fetch(`${url}/jobs`, { method: "POST", headers, body: "{" });
        assert.deepEqual(
          [nonsense.status, nonsense.headers.get("content-type")],
          [400, "application/problem+json"],
        );
        const events = await fetch(`${url}/events/queues`, { headers });
        const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader();
        let text = "";
        while (!text.includes("event: queues"))
          text += (await reader?.read())?.value ?? assert.fail("it ended");
        await reader?.cancel();
      } finally {
        server.closeAllConnections();
        server.close();
      }
    });
  }
});
