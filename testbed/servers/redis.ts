import { join } from "node:path";
import { Daemon } from "../daemon.ts";
import { freePort } from "../port.ts";
import { ask } from "../resp.ts";
import type { ServerKind, Site } from "../server-kind.ts";
import type { Software } from "../software.ts";

export const redisSoftware: Software = {
  programs: ["redis-server", "redis-cli"],
  packages: [["redis-server"]],
  image: "redis:7",
};

/** One Redis that flushes each write to disk before it answers. */
export const redis = {
  name: "redis",
  variable: "ESCAPEMENT_TEST_REDIS",
  software: [redisSoftware],

  async start(site) {
    const port = await freePort();
    const node = redisNode(site, "redis", port);
    await node.start();
    return { url: redisUrl(site, port) };
  },

  version: redisVersion,
} as const satisfies ServerKind;

/** A Redis process of a server, with `settings` beside those that all have. */
export function redisNode(
  site: Site,
  name: string,
  port: number,
  settings: Readonly<Record<string, string | number>> = {},
): Daemon {
  const { tools, folder, password } = site;
  const all = {
    port,
    bind: "127.0.0.1",
    dir: site.makeFolder(name),
    save: '""',
    appendonly: "yes",
    appendfsync: "always",
    requirepass: password,
    masterauth: password,
    ...settings,
  };
  const lines = Object.entries(all).map(([key, value]) => `${key} ${value}\n`);
  const config = site.writeFile(`${name}.conf`, lines.join(""));
  const url = redisUrl(site, port);
  const daemon = new Daemon({
    name,
    command: () => tools.command("redis-server", [config], { folder }),
    log: join(folder, `${name}.log`),
    isReady: async () => (await ask(url, "PING")) === "PONG",
    stopSignal: "SIGTERM",
  });
  site.daemons.push(daemon);
  return daemon;
}

export function redisUrl({ password }: Site, port: number): string {
  return `redis://:${password}@127.0.0.1:${port}`;
}

export async function redisVersion(url: string): Promise<string> {
  return /(?:redis|valkey)_version:(\S+)/.exec(String(await ask(url, "INFO", "server")))?.[1] ?? "?";
}

/** The URL of the first of several servers: `redis+cluster://:secret@a:1,b:2` gives `redis://:secret@a:1`. */
export function firstNode(url: string, { password = true } = {}): string {
  const [, login = "", host = ""] = /^[^/]+:\/\/([^@]*@)?([^,/?]+)/.exec(url) ?? [];
  return `redis://${password ? login : ""}${host}`;
}
