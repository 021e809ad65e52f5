import { setTimeout as sleep } from "node:timers/promises";
import { run } from "../command.ts";
import { freePort } from "../port.ts";
import { ask } from "../resp.ts";
import type { ServerKind } from "../server-kind.ts";
import { firstNode, redisNode, redisSoftware, redisUrl, redisVersion } from "./redis.ts";

/** Each node talks to the others on this many ports above its own. */
const busOffset = 10_000;
const settleTimeoutMs = 30_000;

/** Three primaries (`node-1` to `node-3`) with a third of the slots each; the URL lists them. */
export const redisCluster = {
  name: "redisCluster",
  variable: "ESCAPEMENT_TEST_REDIS_CLUSTER",
  software: [redisSoftware],

  async start(site) {
    const { tools, folder, password } = site;
    const ports: number[] = [];
    for (let node = 1; node <= 3; node++) {
      const port = await freePort([busOffset]);
      ports.push(port);
      await redisNode(site, `node-${node}`, port, {
        "cluster-enabled": "yes",
        "cluster-config-file": "nodes.conf",
        "cluster-node-timeout": 2_000,
      }).start();
    }
    const hosts = ports.map((port) => `127.0.0.1:${port}`);
    const args = ["--cluster", "create", ...hosts, "--cluster-yes"];
    await run(tools.command("redis-cli", args, { folder, env: { REDISCLI_AUTH: password } }));
    for (const port of ports) await untilItServes(redisUrl(site, port));
    return { url: `redis+cluster://:${password}@${hosts.join(",")}` };
  },

  version: (url) => redisVersion(firstNode(url)),
} as const satisfies ServerKind;

async function untilItServes(url: string): Promise<void> {
  const deadline = Date.now() + settleTimeoutMs;
  while (!(await ask(url, "CLUSTER", "INFO")).includes("cluster_state:ok")) {
    if (Date.now() > deadline) throw new Error(`the cluster was not complete after ${settleTimeoutMs} ms`);
    await sleep(50);
  }
}
