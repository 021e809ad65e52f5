import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { AppHealth } from "../client/client.ts";
import { durabilityAdvice } from "./durability-advice.ts";

type Given = readonly [engine: string, details: AppHealth["details"], expected: RegExp];

const redis = { appendonly: "yes", appendfsync: "always", maxmemory: "0", "maxmemory-policy": "noeviction" };
const mysql = { innodb_flush_log_at_trx_commit: "1", log_bin: "off" };

const cases: readonly Given[] = [
  ["SQLite 3.51.0 (node:sqlite)", { synchronous: "normal" }, /^open it with durability: "full"$/],
  [
    "Redis 8.0.1",
    { ...redis, appendonly: "no", appendfsync: "everysec" },
    /: appendonly yes, appendfsync always$/,
  ],
  ["Valkey 9.0.0", { ...redis, appendfsync: "everysec" }, /: appendfsync always$/],
  [
    "Redis 8.0.1",
    { ...redis, maxmemory: "100", "maxmemory-policy": "allkeys-lru" },
    /: maxmemory-policy noeviction$/,
  ],
  [
    "Redis 8.0.1",
    { ...redis, appendonly: "unknown" },
    /^set appendonly yes, appendfsync always, and let this user run CONFIG GET/,
  ],
  [
    "Redis 8.0.1",
    { ...redis, mode: "sentinel" },
    /^no setting helps: in mode sentinel a failover promotes a replica/,
  ],
  [
    "Redis 8.0.1",
    { ...redis, appendfsync: "no", maxmemory: "unknown", "maxmemory-policy": "unknown" },
    /: appendfsync always$/,
  ],
  [
    "PostgreSQL 18.1",
    { fsync: "on", synchronous_commit: "off" },
    /^set synchronous_commit = on in postgresql\.conf/,
  ],
  [
    "PostgreSQL 18.1",
    { fsync: "off", synchronous_commit: "off" },
    /^set synchronous_commit = on, fsync = on in/,
  ],
  [
    "MariaDB 11.8.0",
    { ...mysql, innodb_flush_log_at_trx_commit: "2" },
    /: innodb_flush_log_at_trx_commit = 1$/,
  ],
  ["MySQL 9.5.0", { ...mysql, log_bin: "on, sync_binlog 0, ROW" }, /: sync_binlog = 1$/],
  [
    "something else",
    {},
    /SQLite: open it with durability: "full"; Redis: .*; Postgres: .*; MySQL: innodb_flush_log_at_trx_commit = 1/,
  ],
];

describe("what would make a store durable is named, as its server calls it", () => {
  for (const [engine, details, expected] of cases) {
    test(`${engine} ${JSON.stringify(details)}`, () => {
      const capabilities = { durability: "weak" } as AppHealth["capabilities"];
      assert.match(durabilityAdvice({ engine, details, capabilities }), expected);
    });
  }

  test("what ends with the process has no such setting", () => {
    const capabilities = { durability: "none" } as AppHealth["capabilities"];
    assert.match(durabilityAdvice({ engine: "memory", details: {}, capabilities }), /store on disk/);
  });
});
