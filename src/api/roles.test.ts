import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { endpoints } from "./endpoints.ts";
import { mayDo, type Role, type RouteName, roleOf, roles } from "./roles.ts";
import { apiTokens, openSession, tokens } from "./test/api-session.ts";

const routes = Object.keys(roleOf) as RouteName[];

describe("who may call what", () => {
  test("the table has every route, and no other", async () => {
    const { ask, app } = openSession();
    const { answer } = await ask("GET /openapi.json");
    const described = Object.entries<object>(answer["paths"] ?? {}).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const known = endpoints.map(({ route }) => route);
    assert.deepEqual([...known, "GET /openapi.json"].sort(), routes.toSorted());
    assert.deepEqual(described.sort(), known.toSorted());
    await app.stop();
  });

  for (const route of routes.filter((one) => roleOf[one] === "anyone")) {
    test(`${route} answers anyone, and says why only to those with a role`, async () => {
      const { ask, app } = openSession();
      const open = await ask(route, { token: null });
      assert.deepEqual([open.status, open.text], [200, '{"ok":true}']);
      const wrong = await ask(route, { token: "wrong-0123456789abcdef0123456789" });
      assert.deepEqual([wrong.status, wrong.answer["code"]], [401, "unauthorised"]);
      for (const role of roles) {
        const { status, answer } = await ask(route, { token: tokens[role] });
        assert.equal(status, 200);
        assert(Array.isArray(answer["checks"]));
      }
      assert.equal((await ask(route.replace("GET", "POST"), { token: null })).status, 401);
      await app.start();
      await app.stop();
      if (route === "GET /readyz") {
        const { status, text } = await ask(route, { token: null });
        assert.deepEqual([status, text], [503, '{"ok":false}']);
      }
    });
  }

  test("a prefix does not hide the probes, and nothing else is open", async () => {
    const { ask, app } = openSession({ tokens: apiTokens, basePath: "/ops" });
    assert.equal((await ask("GET /ops/healthz", { token: null })).status, 200);
    for (const path of ["/healthz", "/ops/healthz/", "/ops//healthz", "/ops/jobs", "/ops/healthz/../jobs"])
      assert.equal((await ask(`GET ${path}`, { token: null })).status, 401, path);
    await app.stop();
  });

  for (const route of routes.filter((one) => roleOf[one] !== "anyone")) {
    test(`${route} is for ${roleOf[route]} and above`, async () => {
      const { ask, app } = openSession();
      const path = route.replaceAll(/\{\w+\}/g, "unknown");
      for (const token of [null, "wrong-0123456789abcdef0123456789", ""]) {
        const { status, answer } = await ask(path, { token });
        assert.deepEqual([status, answer["code"]], [401, "unauthorised"], `with the token ${token}`);
      }
      for (const role of roles) {
        const { status, answer, text } = await ask(path, { token: tokens[role] });
        if (!mayDo(role, roleOf[route])) assert.deepEqual([status, answer["code"]], [403, "forbidden"], role);
        else
          assert(
            ![401, 403, 404, 405, 500].includes(status) || answer["code"] === "not-found",
            `${role}: ${text}`,
          );
      }
      await app.stop();
    });
  }

  test("what somebody may not do is not done", async () => {
    const { ask, app } = openSession();
    const refused = ["POST /queues/post/pause", "POST /jobs", "PUT /schedules/nightly"];
    for (const route of refused) await ask(route, { token: tokens.read, body: { name: "mail", input: {} } });
    assert.deepEqual(await app.queues(), []);
    assert.equal(await app.count(), 0);
    await app.stop();
  });

  test("roles from authorize are enforced alike, and nonsense from it is no role", async () => {
    let identity: { actor: string; role: Role } | null = { actor: "ann", role: "read" };
    const { ask, app } = openSession({ authorize: () => identity });
    assert.equal((await ask("GET /jobs", { token: null })).status, 200);
    assert.equal((await ask("POST /queues/post/pause", { token: null })).status, 403);
    identity = { actor: "ann", role: "root" as Role };
    assert.equal((await ask("GET /jobs", { token: null })).status, 500);
    identity = null;
    assert.equal((await ask("GET /jobs", { token: null })).status, 401);
    await app.stop();
  });
});
