import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Daemon } from "../daemon.ts";
import { freePort } from "../port.ts";
import { ask } from "../resp.ts";
import type { ServerKind, Site } from "../server-kind.ts";
import { firstNode, redisNode, redisSoftware, redisVersion } from "./redis.ts";

const primaryName = "escapement";
const settleTimeoutMs = 30_000;

/**
 * A primary (`node-1`), two replicas (`node-2`, `node-3`) and three sentinels that promote a replica a second after the
 * primary has gone. The URL lists the sentinels, and its path is the name that they know the primary by.
 */
export const redisSentinel = {
  name: "redisSentinel",
  variable: "ESCAPEMENT_TEST_REDIS_SENTINEL",
  software: [redisSoftware],

  async start(site) {
    const ports = [await freePort(), await freePort(), await freePort()];
    for (const [index, port] of ports.entries()) {
      const settings = index === 0 ? {} : { replicaof: `127.0.0.1 ${ports[0]}` };
      await redisNode(site, `node-${index + 1}`, port, settings).start();
    }
    const sentinels = [await freePort(), await freePort(), await freePort()];
    for (const [index, port] of sentinels.entries()) {
      await sentinel(site, `sentinel-${index + 1}`, port, Number(ports[0])).start();
    }
    for (const port of sentinels) await untilItKnowsAll(port);
    const hosts = sentinels.map((port) => `127.0.0.1:${port}`).join(",");
    return { url: `redis+sentinel://:${site.password}@${hosts}/${primaryName}` };
  },

  version: (url) => redisVersion(firstNode(url, { password: false })),
} as const satisfies ServerKind;

function sentinel(site: Site, name: string, port: number, primaryPort: number): Daemon {
  const { tools, folder, password } = site;
  const config = site.writeFile(
    `${name}.conf`,
    [
      `port ${port}`,
      "bind 127.0.0.1",
      `dir ${site.makeFolder(name)}`,
      `sentinel monitor ${primaryName} 127.0.0.1 ${primaryPort} 2`,
      `sentinel auth-pass ${primaryName} ${password}`,
      `sentinel down-after-milliseconds ${primaryName} 1000`,
      `sentinel failover-timeout ${primaryName} 5000`,
      "",
    ].join("\n"),
  );
  const daemon = new Daemon({
    name,
    command: () => tools.command("redis-server", [config, "--sentinel"], { folder }),
    log: join(folder, `${name}.log`),
    isReady: async () => (await ask(`redis://127.0.0.1:${port}`, "PING")) === "PONG",
    stopSignal: "SIGTERM",
  });
  site.daemons.push(daemon);
  return daemon;
}

/** Before that, a primary that is killed is not replaced. */
async function untilItKnowsAll(port: number): Promise<void> {
  const deadline = Date.now() + settleTimeoutMs;
  while (Date.now() < deadline) {
    const state = await ask(`redis://127.0.0.1:${port}`, "INFO", "sentinel");
    if (/status=ok,.*slaves=2,sentinels=3/.test(state)) return;
    await sleep(50);
  }
  throw new Error(`the sentinel on port ${port} has not found the others in ${settleTimeoutMs} ms`);
}
