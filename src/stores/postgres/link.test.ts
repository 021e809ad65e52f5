import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PgClient, PgPool, PgStatement } from "./client.ts";
import { Link } from "./link.ts";

/** A pool whose one connection keeps what it was asked. */
function fakePool(): { pool: PgPool; asked: PgStatement[] } {
  const asked: PgStatement[] = [];
  const client = {
    query: async (statement: PgStatement) => {
      asked.push(statement);
      return { rows: [{ answer: "1" }] };
    },
    release() {},
    on() {},
    removeListener() {},
  };
  const pool = { connect: async () => client as unknown as PgClient, end: async () => undefined, on() {} };
  return { pool, asked };
}

const names = (asked: readonly PgStatement[]): (string | undefined)[] => asked.map(({ name }) => name);

describe("statements that are run often", () => {
  const ask = async (link: Link): Promise<void> => {
    for (const sql of ["select a", "select b", "select a"]) await link.run(sql, [], true);
    await link.run("select a", []);
  };
  const options = { callTimeoutMs: 60_000, place: "nowhere" };

  test("are prepared on the store's own direct connections, each text under its name", async () => {
    const { pool, asked } = fakePool();
    const link = new Link({ pool, owned: true, ...options });
    link.prepareOften();
    await ask(link);
    assert.deepEqual(names(asked), ["escapement_0", "escapement_1", "escapement_0", undefined]);
  });

  test("are not prepared behind a pooler, nor on a caller's pool", async () => {
    const behindPooler = fakePool();
    await ask(new Link({ pool: behindPooler.pool, owned: true, ...options }));
    const callers = fakePool();
    const link = new Link({ pool: callers.pool, owned: false, ...options });
    link.prepareOften();
    await ask(link);
    assert.deepEqual(names([...behindPooler.asked, ...callers.asked]), Array(8).fill(undefined));
  });

  test("are prepared up to a bound", async () => {
    const { pool, asked } = fakePool();
    const link = new Link({ pool, owned: true, ...options });
    link.prepareOften();
    for (let n = 0; n < 60; n += 1) await link.run(`select ${n}`, [], true);
    assert.equal(names(asked).filter((name) => name !== undefined).length, 50);
  });
});
