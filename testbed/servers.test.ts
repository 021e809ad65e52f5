import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { type PrivateServer, type Server, testbed } from "./index.ts";

const started = await testbed.postgres();
test("Postgres answers, and each user of it gets an empty database", { skip: started.skip }, async () => {
  assert.equal(psql(started, "create table kept (x int); select count(*) from kept"), "0");
  assert.match(psql(started, "show server_version"), new RegExp(`^${started.version}`));
  assert.equal(psql(started, "show fsync"), "on");
  assert.equal(psql(await testbed.postgres(), "select to_regclass('kept') is null"), "t");
});

function psql({ url }: Server | PrivateServer, sql: string): string {
  return execFileSync("psql", ["-XAtq", url, "-c", sql], { encoding: "utf8" }).trim();
}
