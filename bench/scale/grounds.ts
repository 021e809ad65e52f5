import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { Client } from "pg";
import type { StoreFactory } from "../../src/index.ts";
import { testbed } from "../../testbed/index.ts";

/** Bytes that the store has written or moved since it was started. */
export interface Bytes {
  readonly wire: number;
  readonly disk: number;
}

/** Where jobs are worked off: an empty store, and what its server says about itself. */
export interface ScaleGround {
  readonly address: string;
  readonly description: string;
  /** How many threads of the server can work at the same time for this many worker processes. */
  serverThreads(processes: number): number;
  /** Bytes so far; 0 where the server does not tell. */
  bytes(): Promise<Bytes>;
  empty(): Promise<void>;
  close(): Promise<void>;
}

/** Slots of the namespace on a Cluster of three: enough for each node to have some. */
const clusterSlots = 12;

export const scaleGrounds = {
  sqlite: async (): Promise<ScaleGround> => {
    const folder = mkdtempSync(join(tmpdir(), "escapement-scale-"));
    const file = join(folder, "jobs.db");
    return {
      address: `sqlite:${file}`,
      description: "SQLite, WAL, synchronous=full",
      // There is no server, and one process writes at a time.
      serverThreads: () => 1,
      bytes: () => Promise.resolve({ wire: 0, disk: 0 }),
      empty: async () => {
        for (const name of readdirSync(folder)) rmSync(join(folder, name));
      },
      close: async () => rmSync(folder, { recursive: true }),
    };
  },

  redis: async (): Promise<ScaleGround> => {
    const server = available(await testbed.redis({ private: true }));
    const client = new Redis(server.url);
    await client.config("SET", "appendonly", "no");
    return {
      address: server.url,
      description: `Redis ${server.version}, one server, no AOF`,
      serverThreads: () => 1,
      bytes: () => redisBytes([client]),
      empty: async () => void (await client.flushall()),
      async close() {
        client.disconnect();
        await server.stop();
      },
    };
  },

  "redis-cluster": async (): Promise<ScaleGround> => {
    const server = available(await testbed.redisCluster({ private: true }));
    const clients = nodesOf(server.url).map((url) => new Redis(url));
    for (const client of clients) await client.config("SET", "appendonly", "no");
    return {
      address: server.url,
      description: `Redis ${server.version}, a Cluster of ${clients.length}, ${clusterSlots} slots, no AOF`,
      serverThreads: () => clients.length,
      bytes: () => redisBytes(clients),
      empty: async () => void (await Promise.all(clients.map((client) => client.flushall()))),
      async close() {
        for (const client of clients) client.disconnect();
        await server.stop();
      },
    };
  },

  postgres: async (): Promise<ScaleGround> => {
    const server = available(await testbed.postgres({ private: true }));
    const client = new Client(server.url);
    await client.connect();
    return {
      address: server.url,
      description: `PostgreSQL ${server.version}, synchronous_commit=on`,
      // Outcomes and claims of a process travel beside each other.
      serverThreads: (processes) => 2 * processes,
      bytes: async () => {
        const { rows } = await client.query(
          "select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as wal",
        );
        return { wire: 0, disk: Number(rows[0]?.wal ?? 0) };
      },
      empty: async () => void (await client.query("drop schema if exists escapement cascade")),
      async close() {
        await client.end();
        await server.stop();
      },
    };
  },
} as const;

export async function openStore(store: string, address: string): Promise<StoreFactory> {
  if (store === "postgres") return (await import("../../src/stores/postgres/index.ts")).postgres(address);
  if (store === "sqlite") {
    const { sqlite } = await import("../../src/stores/sqlite/index.ts");
    return sqlite({ path: address.replace("sqlite:", "") });
  }
  const { redis } = await import("../../src/stores/redis/index.ts");
  return store === "redis" ? redis(address) : redis({ url: address, slots: clusterSlots });
}

function nodesOf(url: string): string[] {
  const [, password = "", hosts = ""] = /^redis\+cluster:\/\/:([^@]*)@([^/]*)/.exec(url) ?? [];
  return hosts.split(",").map((host) => `redis://:${password}@${host}`);
}

async function redisBytes(clients: readonly Redis[]): Promise<Bytes> {
  const answers = await Promise.all(clients.map((client) => client.info("stats")));
  const figure = (info: string, name: string): number => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);
  const wire = answers.reduce(
    (sum, info) => sum + figure(info, "total_net_input_bytes") + figure(info, "total_net_output_bytes"),
    0,
  );
  return { wire, disk: 0 };
}

function available<T extends { readonly skip: false | string }>(server: T): T {
  if (server.skip !== false) throw new Error(server.skip);
  return server;
}
