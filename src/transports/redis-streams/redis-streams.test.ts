import { describe } from "node:test";
import { testbed } from "../../../testbed/index.ts";
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
});

describe("on a Cluster", { skip: cluster.skip }, () => {
  transportConformance({
    name: "redis-streams, five shards",
    open: async () => redisPlace(cluster.url, { shards: 5 }),
    openFragile: async () => fragileCluster(await testbed.redisCluster({ private: true })),
  });
});
