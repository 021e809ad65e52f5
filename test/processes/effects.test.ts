import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createConnection } from "mysql2/promise";
import pg from "pg";
import { createEscapement, defineJob, type Escapement } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { testbed } from "../../testbed/index.ts";
import { newFolder } from "../behaviour/stores.ts";
import type { EffectNodePlan, Harm, Payment } from "./effect-node.ts";
import { end } from "./fleet.ts";

const pay = defineJob<Payment>({ name: "pay", delivery: "effectively-once" });
const neighbour = defineJob<{ ms: number }>({ name: "neighbour", delivery: "at-most-once" });

/** Reads and writes the table of effects. */
type Sql = (statement: string) => Promise<readonly unknown[]>;

/** Processes whose handlers write through `tx`. Whatever it started, it ends. */
class Shop implements AsyncDisposable {
  readonly client: Escapement;
  readonly #plan: EffectNodePlan;
  readonly #children: ChildProcess[] = [];

  constructor(store: string, lease: number) {
    this.#plan = { store, lease, log: join(newFolder(), "log") };
    this.client = createEscapement({ store, log: silentLogger });
  }

  async start(): Promise<ChildProcess> {
    const child = fork(join(import.meta.dirname, "effect-node.ts"), [JSON.stringify(this.#plan)], {
      execArgv: [],
    });
    this.#children.push(child);
    await new Promise<void>((resolve, reject) => {
      child.once("message", () => resolve());
      child.once("exit", (code) => reject(new Error(`a node ended before it was ready (${code})`)));
    });
    return child;
  }

  starts(id: string): string[] {
    if (!existsSync(this.#plan.log)) return [];
    const lines = readFileSync(this.#plan.log, "utf8").split("\n");
    return lines.filter((line) => line.startsWith(`start ${id} `));
  }

  async until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    const deadline = performance.now() + 60_000;
    while (!(await condition())) {
      assert(performance.now() < deadline, `waited 60 s in vain until ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children.map((child) => end(child)));
    await this.client.stop();
  }
}

const servers = {
  async postgres(url: string): Promise<Sql & AsyncDisposable> {
    const client = new pg.Client(url);
    await client.connect();
    const sql: Sql = async (statement) => (await client.query(statement)).rows;
    return Object.assign(sql, { [Symbol.asyncDispose]: () => client.end() });
  },
  async mysql(url: string): Promise<Sql & AsyncDisposable> {
    const connection = await createConnection(url);
    const sql: Sql = async (statement) => {
      const [rows] = await connection.query(statement);
      return Array.isArray(rows) ? rows : [];
    };
    return Object.assign(sql, { [Symbol.asyncDispose]: () => connection.end() });
  },
};

const beds = { postgres: "postgres", pgbouncer: "postgres", mysql: "mysql" } as const;
const lease = 3_000;

for (const [bed, kind] of Object.entries(beds) as [keyof typeof beds, "postgres" | "mysql"][]) {
  const server = await testbed[bed]();
  describe(`a process that comes to harm inside tx, on ${bed}`, { skip: server.skip }, () => {
    for (const harm of ["block-sent", "block-answered"] as const satisfies Harm[]) {
      test(`a loop that blocks for three leases at the end of tx (${harm}) costs no neighbour its lease [A3, K6]`, async () => {
        const { url } = await testbed[bed]();
        await using sql = await servers[kind](url);
        await sql("create table effects (job varchar(100) primary key)");
        await using shop = new Shop(url, lease);
        await shop.start();
        const ids = Array.from({ length: 5 }, (_, n) => `neighbour-${n}`);
        for (const id of ids) await shop.client.enqueue(neighbour, { ms: 4 * lease }, { id });
        await shop.until("they run", () => ids.every((id) => shop.starts(id).length === 1));
        // Another node reaps what has lost its lease.
        const reaping = createEscapement({ store: url, log: silentLogger, lease });
        await using _ = { [Symbol.asyncDispose]: () => reaping.stop() };
        await reaping.start({ roles: ["reaper"] });
        await shop.client.enqueue(pay, { harm, blockMs: 3 * lease }, { id: "pay" });
        const state = async (id: string) => (await shop.client.get(id))?.state;
        await shop.until("the payment is made", async () => (await state("pay")) === "succeeded");
        for (const id of ids)
          await shop.until(
            `${id} has ended`,
            async () => !["waiting", "active"].includes((await state(id)) ?? ""),
          );
        assert.deepEqual(
          await Promise.all(ids.map(state)),
          ids.map(() => "succeeded"),
        );
        assert.equal((await sql("select * from effects")).length, 1);
        const job = await shop.client.get("pay");
        assert.deepEqual([job?.attempt, job?.crashes], [1, 0]);
      });
    }

    test("a process that is stopped inside tx keeps its job from nobody, nor the rows that it wrote [A3]", async () => {
      const { url } = await testbed[bed]();
      await using sql = await servers[kind](url);
      await sql("create table effects (job varchar(100) primary key)");
      await using shop = new Shop(url, lease);
      await Promise.all([shop.start(), shop.start()]);
      await shop.client.enqueue(pay, { harm: "stop", blockMs: 0 }, { id: "pay" });
      const state = async () => (await shop.client.get("pay"))?.state;
      await shop.until("the other one has made the payment", async () => (await state()) === "succeeded");
      assert.equal(new Set(shop.starts("pay").map((line) => line.split(" ")[3])).size, 2, "two processes");
      assert.equal((await sql("select * from effects")).length, 1);
    });
  });
}
