import { after, describe } from "node:test";
import { createPool } from "mysql2";
import { everyNthOnVariants } from "../../../test/full.ts";
import { testbed } from "../../../testbed/index.ts";
import { storeConformance } from "../../testing/conformance/suite.ts";
import { assertBooks } from "./test/bookkeeping.ts";
import { harness, lacksSkipLocked, tablePrefix } from "./test/harness.ts";

const server = await testbed.mysql();
const mysql8 = await testbed.mysql8();

describe("on MariaDB or MySQL", { skip: server.skip }, () => {
  after(() => assertBooks(server.url, tablePrefix));
  describe("which has SKIP LOCKED", { skip: lacksSkipLocked(server) }, () => {
    storeConformance({
      name: "mysql with SKIP LOCKED [K7]",
      open: async () => harness({ url: server.url, skipLocked: true }),
    });
  });
  storeConformance({
    name: "mysql without SKIP LOCKED [K7]",
    open: async () => harness({ url: server.url, skipLocked: false }),
    // A server without it has no other way.
    everyNth: lacksSkipLocked(server) === false ? everyNthOnVariants : 1,
  });
  storeConformance({
    name: "mysql on a caller's pool that takes one statement at a time",
    async open() {
      const pool = createPool({ uri: server.url, connectionLimit: 20, timezone: "+05:30" });
      return harness({ pool }, () => pool.promise().end());
    },
    everyNth: everyNthOnVariants,
  });
});

describe("on MySQL itself", { skip: mysql8.skip }, () => {
  after(() => assertBooks(mysql8.url, tablePrefix));
  storeConformance({ name: "mysql 8", open: async () => harness({ url: mysql8.url }) });
});
