import assert from "node:assert/strict";
import { test } from "node:test";
import { createApi } from "../../src/api/create-api.ts";
import { endpoints } from "../../src/api/endpoints.ts";
import { defineJob, type HandlerContext, Operations } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { TestEscapement } from "../../src/testing/kit.ts";
import { onEveryStore } from "./stores.ts";

const mail = defineJob<{ to: string }>({
  name: "mail",
  queue: "post",
  retry: { attempts: 1 },
  run: ({ input, log }: HandlerContext<{ to: string }>) => {
    log("on its way");
    if (input.to === "nobody") throw new RangeError("no route to nobody");
    return { sent: input.to };
  },
});

type Answer = Record<string, never> & { readonly id: string };

/** Asks the API of an app, and checks each answer against the schema that describes it. */
function asker(app: TestEscapement, seen: Set<string>) {
  const api = createApi(app, { insecure: true });
  return async (route: string, path: string, body?: unknown, headers = {}): Promise<Answer> => {
    const endpoint = endpoints.find((one) => one.route === route);
    const [method = ""] = route.split(" ");
    const response = await api(
      new Request(`http://localhost${path}`, {
        method,
        headers: { ...headers, ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
    const text = await response.text();
    assert(response.ok, `${route}: ${response.status} ${text}`);
    const value: Answer = JSON.parse(text);
    const checked = endpoint?.answer.safeParse(value);
    assert(checked?.success, `${route} answered ${text}: ${checked?.error?.message}`);
    seen.add(route);
    return value;
  };
}

onEveryStore("the HTTP API", (bed) => {
  test("every route answers as its schema says", async () => {
    await using app = await bed.app({ jobs: [mail], log: silentLogger });
    const seen = new Set<string>();
    const ask = asker(app, seen);
    const to = (who: string) => ({ name: "mail", input: { to: who } });

    await ask("POST /jobs", "/jobs", { ...to("ann"), id: "fine/1", tags: ["vip"], reason: "a test" });
    await ask("POST /jobs", "/jobs", { ...to("nobody"), id: "bad" });
    await ask("POST /jobs", "/jobs", { ...to("nobody"), id: "worse" });
    const key = { "Idempotency-Key": "once" };
    const once = await ask("POST /jobs", "/jobs", { ...to("bob"), delay: "1h" }, key);
    const again = await ask("POST /jobs", "/jobs", { ...to("bob"), delay: "1h" }, key);
    assert.deepEqual([again.id, again["outcome"]], [once.id, "existing"]);
    await ask("PUT /schedules/{key}", "/schedules/nightly", {
      spec: { cron: "0 3 * * *" },
      job: "mail",
      input: {},
    });
    await app.runUntilIdle();

    // Kits have a clock of their own, so how long ago something was is no word here.
    const { now } = await app.health();
    const ago = (days: number): string => new Date(now.getTime() - days * 86_400_000).toISOString();
    const { jobs } = await ask(
      "GET /jobs",
      `/jobs?state=dead&since=${ago(1)}&error=route&order=oldest&limit=10`,
    );
    assert.deepEqual(
      (jobs as readonly { id: string }[] | undefined)?.map(({ id }) => id),
      ["bad", "worse"],
    );
    await ask("GET /jobs", "/jobs?state=succeeded,dead&name=mail&queue=post&tag=vip&delivery=at-least-once");
    await ask("GET /healthz", "/healthz");
    await ask("GET /readyz", "/readyz");
    await ask("GET /jobs/{id}", "/jobs/bad");
    await ask("GET /jobs/{id}", `/jobs/${once.id}`);
    await ask("POST /jobs", "/jobs", { ...to("eve"), id: "child", after: [once.id] });
    const { children } = await ask("GET /jobs/{id}/children", `/jobs/${once.id}/children`);
    assert.deepEqual(children, [{ id: "child", name: "mail", state: "blocked", waitsFor: [once.id] }]);
    const result = await ask("GET /jobs/{id}/result", "/jobs/fine%2F1/result?waitMs=1000");
    assert.deepEqual(result["result"], { sent: "ann" });
    await ask("PATCH /jobs/{id}", `/jobs/${once.id}`, { priority: 3, input: { to: "cid" }, delay: "2h" });
    await ask("POST /jobs/{id}/run-now", `/jobs/${once.id}/run-now`, {});
    await ask("POST /jobs/{id}/cancel", `/jobs/${once.id}/cancel`, { reason: "not needed" });
    await ask("POST /jobs/{id}/redrive", "/jobs/worse/redrive");
    await app.runUntilIdle();

    const { groups } = await ask("GET /failures", "/failures?name=mail");
    const [group] = (groups ?? []) as unknown as readonly { fingerprint: string; count: number }[];
    assert.equal(group?.count, 2);
    const done = async (task: Answer): Promise<Answer> => {
      for (let one = task; ; one = await ask("GET /tasks/{id}", `/tasks/${task.id}`))
        if (one["state"] !== "running") return one;
    };
    const path = `/failures/${group?.fingerprint}/redrive`;
    const counted = await done(await ask("POST /failures/{fingerprint}/redrive", path, { dryRun: true }));
    assert.deepEqual([counted["matched"], counted["outcomes"]], [2, {}]);
    const redriven = await done(await ask("POST /failures/{fingerprint}/redrive", path, { reason: "fixed" }));
    assert.deepEqual(redriven["outcomes"], { redriven: 2 });
    await app.runUntilIdle();
    const filter = { state: ["dead"], error: "route" };
    await done(await ask("POST /jobs/redrive", "/jobs/redrive", { filter, dryRun: true }));
    await done(await ask("POST /jobs/cancel", "/jobs/cancel", { filter: { name: ["nothing"] } }));
    const nothing = { filter: { name: ["nothing"] } };
    await done(await ask("POST /jobs/run-now", "/jobs/run-now", nothing));
    await done(await ask("POST /jobs/priority", "/jobs/priority", { ...nothing, priority: 3 }));
    const deleted = await done(await ask("POST /jobs/delete", "/jobs/delete", { filter }));
    assert.deepEqual(deleted["outcomes"], { deleted: 2 });
    await ask("POST /tasks/{id}/stop", `/tasks/${deleted.id}/stop`);
    await ask("GET /tasks", "/tasks");
    await ask("DELETE /jobs/{id}", "/jobs/fine%2F1?reason=done");

    await ask("POST /queues/{queue}/pause", "/queues/post/pause", { reason: "smtp is down" });
    await ask("POST /queues/{queue}/resume", "/queues/post/resume");
    await ask("PATCH /queues/{queue}", "/queues/post", { concurrency: 2, rate: { limit: 5, per: "1s" } });
    await ask("GET /queues", "/queues");
    assert.deepEqual(await ask("GET /queues/{queue}/oldest", "/queues/nobody/oldest"), { id: null });
    for (const verb of ["pause", "resume", "trigger"])
      await ask(`POST /schedules/{key}/${verb}`, `/schedules/nightly/${verb}`, {});
    await ask("GET /schedules", "/schedules");
    await ask("GET /schedules/{key}", "/schedules/nightly");
    await ask("GET /schedules/{key}/next", "/schedules/nightly/next?count=3");
    const ofRule = { spec: { cron: "30 2 * * *", timezone: "Europe/Berlin" } };
    const meant = await ask("POST /schedules/preview", "/schedules/preview", { ...ofRule, count: 61 });
    assert.equal(meant["text"], "at 02:30");
    assert.equal((meant["times"] as readonly unknown[] | undefined)?.length, 61);
    const changed = await ask("PATCH /schedules/{key}", "/schedules/nightly", {
      spec: { cron: "0 4 * * *" },
    });
    assert.equal(changed["outcome"], "changed");
    await ask("PATCH /schedules/{key}", "/schedules/nightly", { spec: { cron: "0 3 * * *" } });
    await ask(
      "GET /schedules/{key}/occurrences",
      `/schedules/nightly/occurrences?from=${ago(7)}&to=${ago(0)}`,
    );
    const span = { from: ago(3), to: now.toISOString() };
    const route = "POST /schedules/{key}/backfill";
    const preview = await ask(route, "/schedules/nightly/backfill", { ...span, dryRun: true });
    assert.equal(preview["count"], 3);
    assert.equal((await ask(route, "/schedules/nightly/backfill", span))["count"], 3);
    assert.equal((await ask(route, "/schedules/nightly/backfill", { ...span, dryRun: true }))["count"], 0);
    await ask("DELETE /schedules/{key}", "/schedules/nightly");
    for (const _ of [1, 2]) await app.enqueue(mail, { to: "fay" }, { id: "twice" });
    await ask("GET /definitions", "/definitions");
    assert.deepEqual(await ask("GET /verify", "/verify"), { report: null, problem: null });
    const paths = ["me", "overview", "counts?by=name,state&queue=post", "health", "nodes", "partitions"];
    await app.advance("20s");
    const { points } = await ask("GET /history", `/history?by=queue&since=${ago(1)}`);
    assert.equal(JSON.parse(JSON.stringify(points))[0].queue, "post");
    for (const one of [...paths, `audit?actor=local&action=redrive-all&since=${ago(1)}`])
      await ask(`GET /${one.replace(/\?.*/, "")}`, `/${one}`);
    const missing = endpoints.filter(({ isStream, route: one }) => isStream !== true && !seen.has(one));
    assert.deepEqual(
      missing.map((one) => one.route),
      [],
    );
  });

  test("a key of a request stands for one request of one actor", async () => {
    await using app = await bed.app({ jobs: [mail], log: silentLogger });
    const api = createApi(app, {
      authorize: ({ headers }) => ({ actor: headers.get("x-actor") ?? "", role: "operate" }),
    });
    const enqueue = async (actor: string, input: unknown): Promise<[number, string]> => {
      const response = await api(
        new Request("http://localhost/jobs", {
          method: "POST",
          headers: { "X-Actor": actor, "Idempotency-Key": "k", "Content-Type": "application/json" },
          body: JSON.stringify({ name: "mail", input }),
        }),
      );
      const { id, code } = (await response.json()) as { id?: string; code?: string };
      return [response.status, id ?? code ?? ""];
    };
    const [status, id] = await enqueue("ann", { to: "x", n: 1 });
    assert.equal(status, 201);
    assert.deepEqual(await enqueue("ann", { n: 1, to: "x" }), [200, id]);
    assert.deepEqual(await enqueue("ann", { to: "y" }), [422, "idempotency-mismatch"]);
    assert.notEqual((await enqueue("bob", { to: "x", n: 1 }))[1], id);
    assert.equal(await new Operations(app).counts([]).then(([row]) => row?.count), 2);
  });
});
