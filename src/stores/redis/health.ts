import { EscapementError } from "../../errors.ts";
import type { Capabilities, Health } from "../../store.ts";
import type { Link } from "./link.ts";
import { layoutVersion } from "./migrate.ts";
import { bufferOf, type Space } from "./space.ts";
import { Reader } from "./wire.ts";

/** What the server says of itself; null where it is not allowed to say. */
export interface ServerFacts {
  readonly engine: string;
  readonly appendonly: string | null;
  readonly appendfsync: string | null;
  readonly maxmemoryPolicy: string | null;
  readonly maxmemory: string | null;
}

const oldestVersion = [6, 2] as const;

export async function readFacts(link: Link): Promise<ServerFacts> {
  const info = String(bufferOf(await link.call("INFO", ["server"])));
  const valkey = /valkey_version:(\S+)/.exec(info)?.[1];
  const version = /redis_version:(\S+)/.exec(info)?.[1] ?? "0";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < oldestVersion[0] || (major === oldestVersion[0] && minor < oldestVersion[1])) {
    throw new EscapementError(
      "store-unsupported",
      `Redis store ${link.where}: it is Redis ${version}, and this library needs ${oldestVersion.join(".")} or later; upgrade the server`,
    );
  }
  return {
    engine: valkey === undefined ? `Redis ${version}` : `Valkey ${valkey}`,
    appendonly: await setting(link, "appendonly"),
    appendfsync: await setting(link, "appendfsync"),
    maxmemory: await setting(link, "maxmemory"),
    maxmemoryPolicy: await setting(link, "maxmemory-policy"),
  };
}

/** CONFIG is forbidden on many managed servers; then nobody knows. */
async function setting(link: Link, name: string): Promise<string | null> {
  try {
    const answer = await link.call("CONFIG", ["GET", name]);
    return Array.isArray(answer) && answer.length > 1 ? String(bufferOf(answer[1])) : null;
  } catch (error) {
    if (error instanceof EscapementError && error.code !== "store-unavailable") return null;
    throw error;
  }
}

/** What can be lost of an acknowledged write, and why; see docs/REDIS.md. */
export function durabilityOf(
  link: Link,
  facts: ServerFacts,
): { readonly durability: Capabilities["durability"]; readonly because: string } {
  const weak = (because: string) => ({ durability: "weak", because }) as const;
  if (facts.appendonly === null || facts.appendfsync === null) {
    return weak("the server does not say how it writes to disk (CONFIG GET is forbidden)");
  }
  if (facts.maxmemory !== "0" && facts.maxmemory !== null && facts.maxmemoryPolicy !== "noeviction") {
    return weak(`when its memory is full it forgets keys (maxmemory-policy ${facts.maxmemoryPolicy})`);
  }
  if (facts.appendonly !== "yes") return weak("nothing is written to disk with each write (appendonly no)");
  if (facts.appendfsync === "everysec")
    return weak("a power failure costs up to a second (appendfsync everysec)");
  if (facts.appendfsync !== "always")
    return weak(`the system decides when to write to disk (appendfsync ${facts.appendfsync})`);
  if (link.mode === "sentinel") return weak("replicas are behind, and a failover takes one of them");
  if (link.mode === "cluster")
    return weak("replicas are behind, and a failover in the cluster takes one of them");
  return {
    durability: "full",
    because: "each write is on disk before it is acknowledged (appendfsync always)",
  };
}

export async function health(space: Space): Promise<Health> {
  const { link } = space;
  const facts = await readFacts(link);
  const now = new Date(new Reader(await space.text("time", 0)).f64());
  const { durability, because } = durabilityOf(link, facts);
  return {
    now,
    engine: facts.engine,
    schemaVersion: layoutVersion,
    details: {
      servers: link.where,
      mode: link.mode,
      slots: String(space.slots),
      durability: `${durability}: ${because}`,
      appendonly: facts.appendonly ?? "unknown",
      appendfsync: facts.appendfsync ?? "unknown",
      maxmemory: facts.maxmemory ?? "unknown",
      "maxmemory-policy": facts.maxmemoryPolicy ?? "unknown",
    },
    problems: problemsOf(facts),
  };
}

/** Settings that weaken a promise and that somebody could change. */
function problemsOf(facts: ServerFacts): string[] {
  const problems: string[] = [];
  if (facts.maxmemory !== "0" && facts.maxmemory !== null && facts.maxmemoryPolicy !== "noeviction") {
    problems.push(
      `maxmemory-policy is ${facts.maxmemoryPolicy}: a full server forgets jobs; set it to noeviction`,
    );
  }
  if (facts.appendonly === "no") {
    problems.push("appendonly is no: a restart forgets jobs; set appendonly yes and appendfsync always");
  } else if (facts.appendfsync !== null && facts.appendfsync !== "always") {
    problems.push(
      `appendfsync is ${facts.appendfsync}: a power failure costs the latest acknowledged writes; set it to always`,
    );
  }
  return problems;
}
