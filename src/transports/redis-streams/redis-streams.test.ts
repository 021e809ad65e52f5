import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import { Scene } from "../../testing/transports/scene.ts";
import { transportConformance } from "../../testing/transports/suite.ts";
import { fragileCluster, fragileRedis, redisPlace } from "./test/place.ts";

const single = await testbed.redis();
const cluster = await testbed.redisCluster();

describe("on a single server", { skip: single.skip }, () => {
  transportConformance({
    name: "redis-streams",
    open: async () => redisPlace(single.url),
    openFragile: async () => fragileRedis(await testbed.redis({ private: true })),
  });

  test("a transport that is closed while a publish waits for its connection is not opened again by it", async () => {
    const place = await fragileRedis(await testbed.redis({ private: true }));
    try {
      const scene = await Scene.open(place);
      await scene.publishPatiently(scene.messages(1));
      place.way?.delay(500);
      // It gives the connection up, and the next finds it closing.
      await scene.publish(scene.messages(1), 300);
      place.way?.pass();
      const waiting = scene.publish(scene.messages(1));
      await new Promise((resolve) => setTimeout(resolve, 10));
      await scene.transport.close();
      const [result] = await waiting;
      assert.equal(result?.kind, "refused");
    } finally {
      await place.close();
    }
  });
});

describe("on a Cluster", { skip: cluster.skip }, () => {
  transportConformance({
    name: "redis-streams, five shards",
    open: async () => redisPlace(cluster.url, { shards: 5 }),
    openFragile: async () => fragileCluster(await testbed.redisCluster({ private: true })),
  });
});
