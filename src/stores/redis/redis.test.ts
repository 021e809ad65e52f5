import { describe } from "node:test";
import { everyNthOnVariants } from "../../../test/full.ts";
import { testbed } from "../../../testbed/index.ts";
import { storeConformance } from "../../testing/conformance/suite.ts";
import { harness, newPrefix } from "./test/harness.ts";

const single = await testbed.redis();
const cluster = await testbed.redisCluster();

describe("on a single server [C7]", { skip: single.skip }, () => {
  storeConformance({
    name: "redis",
    open: async () => harness({ url: single.url, prefix: newPrefix(single) }),
  });
});

describe("on a Cluster [C7]", { skip: cluster.skip }, () => {
  storeConformance({
    name: "redis cluster, one slot",
    open: async () => harness({ url: cluster.url, prefix: newPrefix(cluster) }),
    everyNth: everyNthOnVariants,
  });

  storeConformance({
    name: "redis cluster, three slots",
    open: async () => harness({ url: cluster.url, prefix: newPrefix(cluster), slots: 3 }),
  });
});
