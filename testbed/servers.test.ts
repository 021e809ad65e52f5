import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { Admin } from "@platformatic/kafka";
import { FaultProxy } from "../src/proof/proxy.ts";
import { type Server, testbed } from "./index.ts";
import { ask } from "./resp.ts";
import { proxyKafka } from "./servers/kafka.ts";
import { mysql, query as mysqlQuery } from "./servers/mysql.ts";
import { postgres, query as postgresQuery } from "./servers/postgres.ts";
import { firstNode } from "./servers/redis.ts";
import { provide, type Software } from "./software.ts";

describe("postgres", async () => {
  const server = await testbed.postgres();
  const { skip } = server;

  test("it answers, each user of it gets an empty database, and commits are flushed", { skip }, async () => {
    assert.equal(await psql(server, "create table kept (x int); select count(*) from kept"), "0");
    assert.match(await psql(server, "show server_version"), new RegExp(`^${server.version}`));
    assert.equal(await psql(server, "show fsync"), "on");
    assert.equal(await psql(await testbed.postgres(), "select to_regclass('kept') is null"), "t");
  });

  test("a private one keeps its data when it is killed, and its port", { skip }, async () => {
    await using own = await testbed.postgres({ private: true });
    await psql(own, "create table kept (x int); insert into kept values (1)");
    await own.kill();
    await assert.rejects(psql(own, "select 1"));
    await own.restart();
    assert.equal(await psql(own, "select x from kept"), "1");
    assert.equal(await psql(server, "select to_regclass('kept') is not null"), "t");
  });
});

describe("pgbouncer", async () => {
  const server = await testbed.pgbouncer();
  test("it stands in front of Postgres and pools by transactions", { skip: server.skip }, async () => {
    assert.equal(await psql(server, "select current_database()"), server.name);
    const console = new URL(server.url);
    console.pathname = "/pgbouncer";
    assert.match(
      await postgresQuery(await tools(postgres.client), console.href, "show config"),
      /pool_mode\|transaction/,
    );
  });
});

describe("mysql", async () => {
  const server = await testbed.mysql();
  const { skip } = server;
  const sql = async ({ url, name }: Server, text: string) =>
    mysqlQuery(await tools(mysql.client), url, `use ${name}; ${text}`);

  test("it answers, each user of it gets an empty database, and commits are flushed", { skip }, async () => {
    assert.equal(await sql(server, "create table kept (x int); select count(*) from kept"), "0");
    assert.match(await sql(server, "select version()"), new RegExp(`^${server.version}`));
    assert.equal(await sql(server, "select @@innodb_flush_log_at_trx_commit"), "1");
    assert.equal(await sql(await testbed.mysql(), "show tables"), "");
  });

  test("a private one can be killed and brought back, and there are no logins without a password", {
    skip,
  }, async () => {
    await using own = await testbed.mysql({ private: true });
    await mysqlQuery(await tools(mysql.client), own.url, "create database kept");
    await own.kill();
    await own.restart();
    assert.equal(await mysqlQuery(await tools(mysql.client), own.url, "show databases like 'kept'"), "kept");
    for (const user of ["root", "mysql", "mariadb.sys", ""]) {
      const login = new URL(own.url);
      login.username = user;
      login.password = "";
      await assert.rejects(
        mysqlQuery(await tools(mysql.client), login.href, "select 1"),
        /denied|locked|not allowed/,
      );
    }
  });
});

describe("redis", async () => {
  const server = await testbed.redis();
  const { skip } = server;

  test("it answers, wants its password, and flushes each write", { skip }, async () => {
    assert.equal(await ask(server.url, "PING"), "PONG");
    assert.equal(await ask(server.url, "CONFIG", "GET", "appendfsync"), "appendfsync always");
    await assert.rejects(ask(firstNode(server.url, { password: false }), "PING"), /NOAUTH/);
  });

  test("a private one keeps its data when it is killed; paused, it does not answer", { skip }, async () => {
    await using own = await testbed.redis({ private: true });
    await ask(own.url, "SET", "kept", "1");
    await own.kill();
    await assert.rejects(ask(own.url, "PING"), /ECONNREFUSED/);
    await own.restart();
    await own.pause();
    const answer = ask(own.url, "GET", "kept");
    assert.equal(await Promise.race([answer, sleep(200, "no answer")]), "no answer");
    await own.resume();
    assert.equal(await answer, "1");
  });

  test("a shared one cannot be stopped by one of its users", { skip }, async () => {
    const shared = server as Server & { kill(): Promise<void> };
    await assert.rejects(shared.kill(), /private: true/);
  });

  test("a proxy stands in front of it", { skip }, async () => {
    await using proxy = await FaultProxy.start(server.url);
    assert.equal(await ask(proxy.url, "PING"), "PONG");
    proxy.cut(10_000);
    await assert.rejects(ask(proxy.url, "PING"), /ECONNRESET|closed/);
  });
});

describe("redisSentinel", async () => {
  const server = await testbed.redisSentinel();
  test("a replica takes over from a primary that was killed", { skip: server.skip }, async () => {
    await using own = await testbed.redisSentinel({ private: true });
    const sentinel = firstNode(own.url, { password: false });
    const primary = () => ask(sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "escapement");
    const first = await primary();
    await own.kill("node-1");
    const deadline = Date.now() + 30_000;
    while ((await primary()) === first) {
      assert(Date.now() < deadline, "the sentinels have named no other primary in 30 s");
      await sleep(100);
    }
    await own.restart("node-1");
  });
});

describe("redisCluster", async () => {
  const server = await testbed.redisCluster();
  test("all slots are served, by three nodes", { skip: server.skip }, async () => {
    const info = await ask(firstNode(server.url), "CLUSTER", "INFO");
    assert.match(info, /cluster_state:ok[\s\S]*cluster_slots_ok:16384[\s\S]*cluster_size:3/);
  });
});

describe("kafka", async () => {
  const server = await testbed.kafka();
  const { skip } = server;

  test("it makes topics, and wants its password", { skip }, async () => {
    await using admin = kafkaAdmin(server.url);
    await admin.client.createTopics({ topics: [server.name], partitions: 2, replicas: 1 });
    assert((await admin.client.listTopics()).includes(server.name));
    const stranger = new URL(server.url);
    stranger.password = "not-the-secret";
    await using other = kafkaAdmin(stranger.href);
    await assert.rejects(other.client.listTopics());
  });

  test("a private one keeps its data when it is killed, and a proxy stands in front of it", {
    skip,
  }, async () => {
    await using own = await testbed.kafka({ private: true });
    await using proxy = await proxyKafka(own.url);
    await using admin = kafkaAdmin(proxy.url);
    await admin.client.createTopics({ topics: ["kept"], partitions: 1, replicas: 1 });
    assert(proxy.connections > 0);
    const { brokers } = await admin.client.metadata({ topics: ["kept"] });
    assert.deepEqual(
      [...brokers.values()].map(({ port }) => port),
      [Number(new URL(proxy.url).port)],
    );
    await own.kill();
    await own.restart();
    await using again = kafkaAdmin(own.url);
    assert.deepEqual(await again.client.listTopics(), ["kept"]);
  });
});

describe("nats", async () => {
  const server = await testbed.nats();
  const { skip } = server;

  test("three nodes keep a stream, also when one of them was killed", { skip }, async () => {
    await using own = await testbed.nats({ private: true });
    await own.kill("node-1");
    const [, login = "", hosts = ""] = /^nats:\/\/([^@]+)@(.+)$/.exec(own.url) ?? [];
    const [user = "", pass = ""] = login.split(":");
    await using connection = await connect({ servers: hosts.split(","), user, pass });
    const manager = await jetstreamManager(connection, { checkAPI: false });
    const deadline = Date.now() + 30_000;
    const make = () => manager.streams.add({ name: "kept", subjects: ["kept.>"], num_replicas: 2 });
    // A leader that was killed is replaced after an election.
    while ((await make().catch(() => null)) === null) {
      assert(Date.now() < deadline, "the other two have made no stream in 30 s");
      await sleep(100);
    }
    await own.restart("node-1");
  });
});

function kafkaAdmin(url: string): { readonly client: Admin } & AsyncDisposable {
  const { host, username, password } = new URL(url);
  const sasl = { mechanism: "PLAIN", username, password } as const;
  const client = new Admin({ clientId: "test", bootstrapBrokers: [host], sasl, retries: 2 });
  return { client, [Symbol.asyncDispose]: () => client.close() };
}

async function psql({ url }: Server, sql: string): Promise<string> {
  return postgresQuery(await tools(postgres.client), url, sql);
}

async function tools(software: Software) {
  const found = await provide([software]);
  assert(typeof found !== "string", String(found));
  return found;
}
