import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import pg from "pg";
import { scratchFolder } from "../../test/scratch.ts";
import { testbed } from "../../testbed/index.ts";
import { systemClock } from "../clock.ts";
import { EscapementError } from "../errors.ts";
import { silentLogger } from "../log.ts";
import { storeFromUrl } from "./open.ts";
import { parseUrl } from "./postgres/connection/url.ts";
import { postgres, postgresInbox } from "./postgres/index.ts";
import { sqlite } from "./sqlite/index.ts";

const server = await testbed.postgres();
const mysqlServer = await testbed.mysql();

async function refusal(url: string): Promise<EscapementError> {
  const open = async (): Promise<void> => {
    const factory = await storeFromUrl(url);
    const store = await factory.open({ namespace: "n", clock: systemClock, log: silentLogger });
    await store.close();
  };
  const error: unknown = await open().then(
    () => null,
    (thrown: unknown) => thrown,
  );
  assert(error instanceof EscapementError, `an EscapementError for a URL, got ${String(error)}`);
  return error;
}

/** A port on which nobody listens. */
async function freePort(): Promise<number> {
  const listener = createServer();
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

describe("the URL of a store", () => {
  const secrets = [
    "p#secret",
    "p/secret",
    "1#secret",
    "1/secret",
    "1?secret",
    "p?secret",
    "%secret",
    "a:b#secret",
  ];
  for (const scheme of ["postgres", "postgresql", "mysql", "mariadb", "redis"]) {
    for (const password of secrets) {
      // Redis takes its URL apart by hand, and these are no trouble there.
      if (scheme === "redis" && !/[/%]/.test(password)) continue;
      test(`${scheme}: a password like ${password} is refused with what to do, and never shown`, async () => {
        const error = await refusal(`${scheme}://user:${password}@localhost:1/db`);
        assert.equal(error.code, "invalid-option");
        assert.match(error.message, /%2F|%25|percent|from 0 to/);
        assert.doesNotMatch(`${error.message} ${JSON.stringify(error)} ${String(error.cause)}`, /secret/);
      });
    }
  }

  test("an encoded password is taken", () => {
    const { url, place } = parseUrl("postgres://user:p%23s%2Fs%25@h:5432/db");
    assert.deepEqual([url, place], ["postgres://user:p%23s%2Fs%25@h:5432/db", "h:5432/db"]);
  });

  test("what is no URL is shown where it cannot hold a password", async () => {
    assert.match((await refusal("foo.db")).message, /got "foo\.db"; a SQLite file is "sqlite:foo\.db"$/);
    assert.match((await refusal("oracle://user:secret@h")).message, /got "oracle:…"$/);
    assert.match((await refusal("user:secret@h")).message, /got "user:…"$/);
    assert.match((await refusal("USER:secret@h")).message, /got a string$/);
  });

  test("SQLite: two slashes do not lead to the root of the file system; three do", async () => {
    const { code, message } = await refusal("sqlite://slash.db");
    assert.equal(code, "invalid-option");
    assert.match(
      message,
      /got "sqlite:\/\/slash\.db"; write "sqlite:slash\.db", or "sqlite:\/\/\/slash\.db"/,
    );
    assert.match((await refusal("sqlite://")).message, /write "sqlite:app\.db"/);
    assert.throws(() => sqlite("sqlite:app.db"), /expected sqlite's path to be .*, got a URL/);
    const file = join(scratchFolder(), "app.db");
    const factory = await storeFromUrl(`sqlite://${file}`);
    await (await factory.open({ namespace: "n", clock: systemClock, log: silentLogger })).close();
    assert.ok(existsSync(file));
  });

  test("a parameter that nobody knows is refused; those of libpq and of hosts pass", async () => {
    assert.match((await refusal("postgres://h/db?schemaa=x")).message, /schema, connections.*got "schemaa"/);
    assert.match((await refusal("postgres://h/db?schema=public")).message, /separate schema.*"public"/);
    assert.match((await refusal("postgres://h/db?connections=many")).message, /connections.*NaN/);
    assert.match((await refusal("mysql://h/db?schema=x")).message, /got "schema"/);
    const given = "postgres://h/db?sslmode=verify-full&channel_binding=require&pgbouncer=true";
    assert.deepEqual(parseUrl(given), { url: given, place: "h/db", options: {} });
    assert.deepEqual(parseUrl(`${given}&schema=my&listen=false`), {
      ...{ url: given, place: "h/db" },
      options: { schema: "my", listen: "false" },
    });
  });

  for (const scheme of ["postgres", "mysql", "redis"]) {
    test(`${scheme}: where nobody listens, the error asks whether a server runs there`, async () => {
      const port = await freePort();
      const parameters = scheme === "redis" ? "?callTimeout=500ms" : "";
      const error = await refusal(`${scheme}://user:secret@127.0.0.1:${port}/0${parameters}`);
      assert.equal(error.code, "store-unavailable");
      assert.match(
        error.message,
        new RegExp(`127\\.0\\.0\\.1:${port}.*(running there|that it runs|server runs)`),
      );
      assert.doesNotMatch(error.message, /secret|carried out/);
    });
  }

  test("Postgres: a server without SSL is told apart from one that is not there", {
    skip: server.skip,
  }, async () => {
    const error = await refusal(`${server.url}?ssl=true`);
    assert.equal(error.code, "store-unsupported");
    assert.match(error.message, /SSL.*sslmode=disable/);
  });

  test("MySQL: a server without SSL is told apart from one that is not there", {
    skip: mysqlServer.skip,
  }, async (t) => {
    const error = await refusal(`${mysqlServer.url}?ssl=true`);
    if (error.code === "store-unavailable") return t.skip("this server has a certificate of its own");
    assert.equal(error.code, "store-unsupported");
    assert.match(error.message, /ssl=false/);
  });

  test("Postgres: a schema can be named in the URL, and an option goes before it", {
    skip: server.skip,
  }, async () => {
    const { url } = await testbed.postgres();
    const context = { namespace: "n", clock: systemClock, log: silentLogger };
    const schemas = async (): Promise<string[]> => {
      const client = new pg.Client(url);
      await client.connect();
      const { rows } = await client.query(
        "select distinct schemaname as name from pg_tables where schemaname !~ '^(pg_|information)' order by 1",
      );
      await client.end();
      return rows.map(({ name }) => name);
    };
    const factories = [
      await storeFromUrl(`${url}?schema=named&connections=3&callTimeout=20s&listen=false`),
      postgres({ url: `${url}?schema=named`, schema: "chosen" }),
    ];
    for (const factory of factories) {
      const store = await factory.open(context);
      await store.migrate();
      assert.match(JSON.stringify(store.address), /"connections":2/);
      await store.close();
    }
    assert.deepEqual(await schemas(), ["chosen", "named"]);
    // The same URL serves an inbox, whose tables stand beside the effects.
    const inbox = postgresInbox(`${url}?schema=named`);
    await inbox.migrate();
    await inbox.close();
    assert.deepEqual(await schemas(), ["chosen", "named", "public"]);
    assert.throws(() => postgresInbox("postgres://user:p#secret@h/db"), { code: "invalid-option" });
  });
});
