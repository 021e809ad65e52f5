import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "../../../log.ts";
import { until } from "../../../testing/until.ts";
import type { PgClient } from "./client.ts";
import { TurnsVacuum } from "./turns-vacuum.ts";

/** A server with so many jobs waiting, and how often it was told to vacuum. */
function serverWith(waiting: number) {
  const told: string[] = [];
  const query = async (text: unknown) => {
    told.push(String(text));
    return { rows: [{ answer: String(waiting) }] };
  };
  const client = { query } as unknown as PgClient;
  const vacuums = (): number => told.filter((sql) => sql.startsWith("vacuum")).length;
  return { link: { borrow: async <T>(use: (one: PgClient) => Promise<T>) => use(client) }, told, vacuums };
}

test("turns are vacuumed after 20,000 claimed jobs, not before", async () => {
  const { link, vacuums, told } = serverWith(1_000);
  const vacuum = new TurnsVacuum(link, '"s"', silentLogger);
  vacuum.claimed(19_999);
  assert.deepEqual(told, []);
  vacuum.claimed(1);
  await until("it was vacuumed", () => vacuums() === 1);
  vacuum.claimed(19_999);
  assert.equal(vacuums(), 1);
  assert.equal(told.at(-1), 'vacuum (skip_locked, truncate false) "s".turns, "s".active');
});

test("beside a long backlog they are vacuumed after a tenth of it", async () => {
  const { link, vacuums, told } = serverWith(1_000_000);
  const vacuum = new TurnsVacuum(link, '"s"', silentLogger);
  vacuum.claimed(20_000);
  await until("it was asked", () => told.length === 1);
  vacuum.claimed(79_999);
  assert.equal(told.length, 1);
  await until("it was vacuumed", () => {
    vacuum.claimed(1);
    return vacuums() === 1;
  });
});

test("a vacuum that fails is tried again after as many jobs", async () => {
  let tries = 0;
  const borrow = async (): Promise<never> => {
    tries += 1;
    throw new Error("no connection");
  };
  const vacuum = new TurnsVacuum({ borrow }, '"s"', silentLogger);
  vacuum.claimed(20_000);
  await until("it was tried", () => tries === 1);
  vacuum.claimed(19_999);
  assert.equal(tries, 1);
  await until("it was tried", () => {
    vacuum.claimed(1);
    return tries === 2;
  });
});
