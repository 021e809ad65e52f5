import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import pg from "pg";
import { testbed } from "../testbed/index.ts";
import { newFolder } from "./behaviour/stores.ts";
import { escapement } from "./command.ts";

const server = await testbed.postgres();

/** Commands that only look, or change what must be there already. */
const asking: readonly (readonly string[])[] = [
  ["status"],
  ["doctor"],
  ["explain", "some-job"],
  ["schedules", "ls"],
  ["schedules", "show", "nightly"],
  ["schedules", "next", "nightly"],
  ["schedules", "pause", "nightly"],
];

describe("commands that ask make nothing", () => {
  test("a missing SQLite file is one clear error, and is still missing afterwards", async () => {
    const folder = newFolder();
    for (const command of asking) {
      const { code, stdout, stderr } = await escapement(folder, ...command, "--store", "sqlite:typo.db");
      assert.deepEqual([code, stdout], [1, ""], command.join(" "));
      assert.equal(
        stderr,
        `escapement: there is no database at ${join(folder, "typo.db")}; check the path, or run "escapement migrate" to make it [store-unmigrated]\n`,
      );
    }
    const dry = await escapement(folder, "migrate", "--dry-run", "--store", "sqlite:folder/typo.db");
    assert.match(dry.stdout, /create table escapement_jobs/);
    assert.deepEqual(readdirSync(folder), []);
  });

  test("a namespace that is not there is an error too, and is not made", async () => {
    const folder = newFolder();
    const store = ["--store", "sqlite:app.db"];
    await escapement(folder, "migrate", ...store);
    assert.equal((await escapement(folder, "status", ...store)).code, 0);
    for (const _ of ["once", "again"]) {
      const { code, stderr } = await escapement(folder, "status", ...store, "--namespace", "typo");
      assert.deepEqual([code, /it has no such namespace; check its name/.test(stderr)], [1, true], stderr);
    }
  });

  test("a file of somebody else is not changed", async () => {
    const folder = newFolder();
    const { DatabaseSync } = await import("node:sqlite");
    const path = join(folder, "other.db");
    {
      using other = new DatabaseSync(path);
      other.exec("pragma journal_mode = delete; create table mine (x)");
    }
    const { code, stderr } = await escapement(folder, "status", "--store", "sqlite:other.db");
    assert.deepEqual([code, /its schema is not there yet/.test(stderr)], [1, true], stderr);
    using other = new DatabaseSync(path);
    assert.equal(other.prepare("pragma journal_mode").get()?.["journal_mode"], "delete");
    assert.equal(existsSync(`${path}-notices`), false);
  });

  test("an empty Postgres database stays empty", { skip: server.skip }, async () => {
    const folder = newFolder();
    const { url } = await testbed.postgres();
    for (const command of asking.slice(0, 3)) {
      const { code, stdout, stderr } = await escapement(folder, ...command, "--store", url);
      assert.deepEqual([code, stdout], [1, ""], command.join(" "));
      assert.match(
        stderr,
        /the schema escapement, or this namespace in it, is not there; .*escapement migrate/,
      );
    }
    assert.match(
      (await escapement(folder, "migrate", "--dry-run", "--store", url)).stdout,
      /create table jobs/,
    );
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query("select 1 from pg_namespace where nspname = 'escapement'");
    await client.end();
    assert.deepEqual(rows, []);
  });
});

describe("a store that does not answer", () => {
  const addresses = ["redis://127.0.0.1:9", "postgres://127.0.0.1:9/db", "mysql://root@127.0.0.1:9/db"];

  test("is asked for as long as --timeout says, with one line for each error, on every store", async () => {
    const run = (url: string, ...flags: string[]) =>
      escapement(newFolder(), "queues", "ls", "--store", url, "--timeout", "3s", ...flags);
    await Promise.all(
      addresses.map(async (url) => {
        const { code, stdout, stderr } = await run(url, "--json");
        const said = stderr
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line));
        const end = said.pop();
        assert.deepEqual([code, stdout, end.error.code], [1, "", "store-unavailable"], stderr);
        const messages = said.map(({ retrying }) => retrying.message);
        assert.equal(messages.length, new Set(messages).size, stderr);
        assert(
          said.every(({ retrying }) => retrying.forMs > 0 && retrying.forMs <= 3_000),
          stderr,
        );
      }),
    );
    const { stderr } = await run("postgres://127.0.0.1:9/db");
    assert.match(stderr, /^the store does not answer: [^\n]+; trying again for 3s\nescapement: [^\n]+\n$/);
  });
});
