import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { FaultProxy } from "../../src/proof/proxy.ts";
import { run } from "../command.ts";
import { Daemon } from "../daemon.ts";
import files from "../jars/kafka.json" with { type: "json" };
import { freePort, isListening } from "../port.ts";
import type { ServerKind, Site } from "../server-kind.ts";

const user = "escapement";
const version = "4.1.1";
/** Ports above that of the URL: the listener behind a proxy, the port at which it says that it is reached, and the controller. */
const offsets = { behindProxy: 1, proxy: 2, controller: 3 };

/** One Kafka broker in KRaft mode, which is its own controller. */
export const kafka = {
  name: "kafka",
  variable: "ESCAPEMENT_TEST_KAFKA",
  software: [
    {
      programs: ["java", "mvn"],
      packages: [["default-jre-headless", "maven"]],
      image: `apache/kafka:${version}`,
      jars: { name: "kafka", version, files, inImage: "/opt/kafka/libs/*" },
    },
  ],

  async start(site) {
    const { tools, folder } = site;
    const port = await freePort(Object.values(offsets));
    const config = site.writeFile("server.properties", properties(site, port));
    const logging = site.writeFile("log4j2.properties", "rootLogger.level = warn\n");
    const java = (main: string, args: readonly string[]) =>
      tools.command("java", [...jvm(logging), "-cp", tools.classpath, main, ...args], { folder });
    const id = Buffer.from(randomUUID().replaceAll("-", ""), "hex").toString("base64url");
    await run(java("kafka.tools.StorageTool", ["format", "--config", config, "--cluster-id", id]));
    const url = `kafka://${user}:${site.password}@127.0.0.1:${port}`;
    const daemon = new Daemon({
      name: "kafka",
      command: () => java("kafka.Kafka", [config]),
      log: join(folder, "log"),
      isReady: async () => (await isListening(port)) && (await answers(url)),
      stopSignal: "SIGTERM",
    });
    site.daemons.push(daemon);
    await daemon.start();
    return { url };
  },

  /** The protocol does not tell it; whether it answers at all is worth knowing. */
  async version(url) {
    if (!(await answers(url))) throw new Error("the Kafka server does not answer");
    return "?";
  },
} as const satisfies ServerKind;

/** A client asks the broker where it is, so that a proxy has to stand where the broker says. One at a time for each server. */
export async function proxyKafka(url: string): Promise<FaultProxy> {
  const target = new URL(url);
  const port = Number(target.port);
  target.port = String(port + offsets.behindProxy);
  return FaultProxy.start(target.href, port + offsets.proxy);
}

/** A small heap, and a collector that starts no threads: it shares two cores with the tests. */
function jvm(logging: string): string[] {
  return ["-Xms256m", "-Xmx768m", "-XX:+UseSerialGC", `-Dlog4j2.configurationFile=${logging}`];
}

function properties(site: Site, port: number): string {
  const login = `org.apache.kafka.common.security.plain.PlainLoginModule required username="${user}" password="${site.password}" user_${user}="${site.password}";`;
  const at = (offset: number): string => `127.0.0.1:${port + offset}`;
  const all = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.quorum.voters": `1@${at(offsets.controller)}`,
    listeners: `CLIENT://${at(0)},PROXIED://${at(offsets.behindProxy)},CONTROLLER://${at(offsets.controller)}`,
    "advertised.listeners": `CLIENT://${at(0)},PROXIED://${at(offsets.proxy)}`,
    "listener.security.protocol.map":
      "CLIENT:SASL_PLAINTEXT,PROXIED:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "CLIENT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.client.plain.sasl.jaas.config": login,
    "listener.name.proxied.plain.sasl.jaas.config": login,
    "listener.name.controller.plain.sasl.jaas.config": login,
    "log.dirs": join(site.folder, "data"),
    "num.partitions": 4,
    "auto.create.topics.enable": false,
    // A single node has no other to keep copies on, and internal topics of many partitions take long to make.
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    // A test that starts a consumer shall not wait for others to join.
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1_000,
  };
  return Object.entries(all)
    .map(([key, value]) => `${key}=${value}\n`)
    .join("");
}

/** Asked by a real client: the port is open some time before the broker serves. */
async function answers(url: string): Promise<boolean> {
  const { Admin } = await import("@platformatic/kafka");
  const { host, username, password } = new URL(url);
  const admin = new Admin({
    clientId: "testbed",
    bootstrapBrokers: [host],
    ...(username === "" ? {} : { sasl: { mechanism: "PLAIN", username, password } }),
    retries: 0,
    connectTimeout: 2_000,
    timeout: 5_000,
  });
  try {
    await admin.listTopics();
    return true;
  } catch {
    return false;
  } finally {
    await admin.close().catch(() => {});
  }
}
