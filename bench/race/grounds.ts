import { mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { Redis } from "ioredis";
import { createConnection } from "mysql2/promise";
import { testbed } from "../../testbed/index.ts";
import type { Ground } from "./contestant.ts";

/** Gives each run a ground of its own: a new file or database, or an emptied server. */
export interface Grounds {
  /** Engine, version and what makes an acknowledged write durable, for the report. */
  readonly description: string;
  next(): Promise<Ground>;
  /** After a run: removes what it left. */
  clear(ground: Ground): Promise<void>;
  close(): Promise<void>;
}

type Durability = Ground["durability"];

export const grounds: Readonly<Record<Ground["store"], (durability: Durability) => Promise<Grounds>>> = {
  async sqlite(durability) {
    const folder = mkdtempSync(resolve(".escapement-race-"));
    let files = 0;
    return {
      description: `SQLite, WAL, synchronous=${durability}`,
      async next() {
        files += 1;
        return { store: "sqlite", durability, address: join(folder, `race-${files}.db`) };
      },
      async clear({ address }) {
        for (const end of ["", "-wal", "-shm", "-notices"]) rmSync(`${address}${end}`, { force: true });
      },
      close: async () => rmSync(folder, { recursive: true, force: true }),
    };
  },

  async postgres(durability) {
    const { version } = available(await testbed.postgres());
    return {
      description: `PostgreSQL ${version}, synchronous_commit=${durability === "full" ? "on" : "off"}`,
      async next() {
        const url = new URL(available(await testbed.postgres()).url);
        if (durability === "normal") url.searchParams.set("options", "-csynchronous_commit=off");
        return { store: "postgres", durability, address: url.href };
      },
      clear: async () => {},
      close: async () => {},
    };
  },

  async mysql(durability) {
    const { version, url } = available(await testbed.mysql());
    const flush = durability === "full" ? 1 : 2;
    const connection = await createConnection(url);
    await connection.query(`set global innodb_flush_log_at_trx_commit = ${flush}`);
    await connection.end();
    return {
      description: `${version}, innodb_flush_log_at_trx_commit=${flush}`,
      next: async () => ({ store: "mysql", durability, address: available(await testbed.mysql()).url }),
      clear: async () => {},
      close: async () => {},
    };
  },

  async redis(durability) {
    const server = available(await testbed.redis({ private: true }));
    const client = new Redis(server.url);
    await client.config("SET", "appendonly", durability === "full" ? "yes" : "no");
    await client.config("SET", "appendfsync", "always");
    return {
      description: `Redis ${server.version}, ${durability === "full" ? "appendfsync always" : "no AOF, no snapshots"}`,
      async next() {
        await client.flushall();
        return { store: "redis", durability, address: server.url };
      },
      clear: async () => {},
      async close() {
        client.disconnect();
        await server.stop();
      },
    };
  },
};

function available<T extends { readonly skip: false | string }>(server: T): T {
  if (server.skip !== false) throw new Error(server.skip);
  return server;
}
