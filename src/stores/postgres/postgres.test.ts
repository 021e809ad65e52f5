import { describe } from "node:test";
import { everyNthOnVariants } from "../../../test/full.ts";
import { testbed } from "../../../testbed/index.ts";
import { storeConformance } from "../../testing/conformance/suite.ts";
import { harness } from "./test/harness.ts";

const server = await testbed.postgres();
const pooler = await testbed.pgbouncer();

describe("on Postgres", { skip: server.skip }, () => {
  storeConformance({ name: "postgres", open: async () => harness({ url: server.url }) });
});

describe("through PgBouncer in transaction mode", { skip: pooler.skip }, () => {
  storeConformance({
    name: "postgres behind a pooler",
    open: async () => harness({ url: pooler.url }),
    everyNth: everyNthOnVariants,
  });
});
