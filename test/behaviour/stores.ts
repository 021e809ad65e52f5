import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe } from "node:test";
import type { Clock } from "../../src/clock.ts";
import type { EscapementOptions } from "../../src/settings.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { mysql } from "../../src/stores/mysql/index.ts";
import { postgres } from "../../src/stores/postgres/index.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { sqlite } from "../../src/stores/sqlite/index.ts";
import { createTestEscapement, type TestEscapement } from "../../src/testing/kit.ts";
import { testbed } from "../../testbed/index.ts";
import { overNetwork } from "./over-network.ts";

/** A store to show a behaviour on, and how to start with a fresh one. */
export interface Bed {
  /** The kind of store. */
  readonly name: string;
  /** A started app on a store of its own, on a virtual clock; it is stopped and its data removed after the test. */
  app(options?: EscapementOptions): Promise<TestEscapement>;
  /** A fresh store, for tests that start several apps on it. */
  store(): StoreFactory;
  /** For the option `skip` of tests that need them. */
  readonly noTransactions: string | false;
  /** For those in which the function given to `tx` awaits something. */
  readonly noAwaitInTransactions: string | false;
}

const folders: string[] = [];
process.on("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const redisServer = await testbed.redis();
const mysqlServer = await testbed.mysql();
const postgresServer = await testbed.postgres();
let places = 0;

interface Kind {
  /** Why it cannot be had here, or false. */
  readonly skip: string | false;
  readonly isNetworked: boolean;
  readonly hasTransactions: boolean;
  create(): StoreFactory;
}

const kinds: Readonly<Record<string, Kind>> = {
  memory: { skip: false, isNetworked: false, hasTransactions: true, create: () => memory() },
  sqlite: {
    skip: false,
    isNetworked: false,
    hasTransactions: true,
    create: () => sqlite(join(newFolder(), "jobs.db")),
  },
  mysql: {
    skip: mysqlServer.skip,
    isNetworked: true,
    hasTransactions: true,
    create: () => inNamespace((clock) => mysql({ url: mysqlServer.url, clock })),
  },
  postgres: {
    skip: postgresServer.skip,
    isNetworked: true,
    hasTransactions: true,
    create: () => inNamespace((clock) => postgres({ url: postgresServer.url, clock })),
  },
  redis: {
    skip: redisServer.skip,
    isNetworked: true,
    hasTransactions: false,
    create: () => {
      const prefix = `${redisServer.name}-${++places}`;
      const factory = overNetwork((clock) => redis({ url: redisServer.url, prefix, clock }));
      networked.push(factory);
      return factory;
    },
  },
};

const networked: { closeAll(): Promise<void> }[] = [];

/** A namespace for each, for making the tables takes longer than most tests. */
function inNamespace(make: (clock: Clock) => StoreFactory): StoreFactory {
  const place = ++places;
  const factory = overNetwork((clock) => ({
    open: (context) => make(clock).open({ ...context, namespace: `${context.namespace} ${place}` }),
  }));
  networked.push(factory);
  return factory;
}

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "escapement-"));
  folders.push(folder);
  return folder;
}

/** Shows the same behaviour on every store; `locally` for what moves the clock by days, second by second, which is no work for a network. */
export function onEveryStore(name: string, define: (bed: Bed) => void, where?: "locally"): void {
  for (const [store, { skip, isNetworked, hasTransactions, create }] of Object.entries(kinds)) {
    if (where === "locally" && isNetworked) continue;
    describe(`${name} (${store})`, { skip }, () => {
      before(() => {
        // Time is virtual, but each poll in it is a real trip.
        if (isNetworked) process.env["ESCAPEMENT_POLL"] = "15s";
      });
      after(() => {
        delete process.env["ESCAPEMENT_POLL"];
      });
      after(() => Promise.all(networked.splice(0).map((factory) => factory.closeAll())));
      define({
        name: store,
        store: create,
        noAwaitInTransactions:
          hasTransactions && store !== "sqlite" ? false : `${store} has no transactions that may wait`,
        noTransactions: hasTransactions ? false : `${store} has no transactions that a job could join`,
        app: (options) => createTestEscapement({ store: create(), ...options }),
      });
    });
  }
}
