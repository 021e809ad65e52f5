import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { getRequestListener } from "@hono/node-server";

const token = "0123456789abcdef0123456789abcdef";
process.env["OPS_TOKEN"] = token;
process.env["ESCAPEMENT_STORE"] = "memory:";
const { app, dashboard } = await import("../../examples/dashboard/app.ts");

const mounts: Readonly<Record<string, () => Promise<Server>>> = {
  Express: async () => createServer((await import("../../examples/dashboard/express.ts")).server),
  async Fastify() {
    const { server } = await import("../../examples/dashboard/fastify.ts");
    await server.ready();
    return server.server;
  },
  async Hono() {
    const { server } = await import("../../examples/dashboard/hono.ts");
    const listener = getRequestListener((request) => server.fetch(request), { overrideGlobalObjects: false });
    return createServer((incoming, outgoing) => void listener(incoming, outgoing));
  },
};

describe("the dashboard in the servers that people have", () => {
  before(() => app.start());
  after(async () => {
    dashboard.close();
    await app.stop();
  });

  for (const [name, mount] of Object.entries(mounts)) {
    test(`${name}: the page, its files and the API below it`, async () => {
      const server = await mount();
      await once(server.listen(0, "127.0.0.1"), "listening");
      try {
        const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ops/escapement`;
        for (const path of ["", "/", "/jobs/a%2Fb", "/schedules/nightly?since=7d"])
          assert.match(await (await fetch(url + path)).text(), /<base href="\/ops\/escapement\/" \/>/, path);
        const script = await fetch(`${url}/assets/app.js`);
        assert.equal(script.headers.get("content-type"), "text/javascript; charset=utf-8");
        assert.equal((await fetch(`${url}/api/jobs`)).status, 401);
        const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
        const body = JSON.stringify({ name: "greet", input: { name } });
        assert.equal((await fetch(`${url}/api/jobs`, { method: "POST", headers, body })).status, 201);
      } finally {
        server.closeAllConnections();
        server.close();
      }
    });
  }

  test("by the session of the site around it: who is not signed in sees the page and nothing else", async () => {
    const session = await import("../../examples/dashboard/session.ts");
    const me = async (cookie: string) => {
      const headers = { cookie };
      const request = new Request("https://site.example/ops/escapement/api/me", { headers });
      const response = await session.dashboard(request);
      return response.status === 200 ? JSON.parse(await response.text()).role : response.status;
    };
    assert.deepEqual(
      [await me(""), await me("session=bob"), await me("session=ada")],
      [401, "read", "admin"],
    );
    session.dashboard.close();
  });
});
