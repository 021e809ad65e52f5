import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createEscapement, defineJob } from "../../index.ts";
import { silentLogger } from "../../log.ts";
import { memory } from "../../stores/memory/index.ts";
import { until } from "../../testing/transports/scene.ts";
import { http } from "./route.ts";
import { secret } from "./test/place.ts";

test("a receiver may take longer than a lease: the partition is renewed while its answer is awaited", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    request.resume();
    asked.push(String(request.headers["escapement-id"]));
    setTimeout(() => response.end(), 2_500);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const route = http({ url, secret, allow: ["127.0.0.1"] });
  const jobs = (["at-least-once", "at-most-once"] as const).map((delivery) =>
    defineJob<null>({ name: delivery, delivery, route }),
  );
  await using app = createEscapement({ store: memory(), jobs, lease: "1s", log: silentLogger });
  await app.start();
  for (const job of jobs) await app.enqueue(job, null, { id: job.name });
  const states = async () => (await app.list({})).jobs.map(({ state }) => state);
  await until("both have ended", async () =>
    (await states()).every((state) => state !== "waiting" && state !== "active"),
  );
  assert.deepEqual(await states(), ["succeeded", "succeeded"]);
  assert.deepEqual(asked.toSorted(), ["at-least-once", "at-most-once"]);
  server.closeAllConnections();
  server.close();
});
