import { EscapementError } from "../../errors.ts";
import type { Capabilities, Health } from "../../store/opening.ts";
import type { Link } from "./connection/link.ts";
import { Reader } from "./connection/wire.ts";
import { layoutVersion } from "./migrate.ts";
import { bufferOf, type Session } from "./session.ts";

/** What the server says about itself; null if it is not allowed to say. */
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
      `Redis store ${link.where}: it runs Redis ${version}, and this library needs ${oldestVersion.join(".")} or later; upgrade the server`,
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

/** CONFIG is forbidden on many managed servers; then the setting is unknown. */
async function setting(link: Link, name: string): Promise<string | null> {
  try {
    const answer = await link.call("CONFIG", ["GET", name]);
    return Array.isArray(answer) && answer.length > 1 ? String(bufferOf(answer[1])) : null;
  } catch (error) {
    if (error instanceof EscapementError && error.code !== "store-unavailable") return null;
    throw error;
  }
}

/** Which acknowledged writes can be lost, and why; see docs/REDIS.md. */
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
  if (facts.appendonly !== "yes") return weak("writes are not logged to disk as they happen (appendonly no)");
  if (facts.appendfsync === "everysec")
    return weak("a power failure loses up to a second of writes (appendfsync everysec)");
  if (facts.appendfsync !== "always")
    return weak(`the system decides when to write to disk (appendfsync ${facts.appendfsync})`);
  if (link.mode === "sentinel") return weak("replicas lag behind, and a failover promotes one of them");
  if (link.mode === "cluster")
    return weak("replicas lag behind, and a failover in the cluster promotes one of them");
  return {
    durability: "full",
    because: "each write is on disk before it is acknowledged (appendfsync always)",
  };
}

export async function health(session: Session): Promise<Health> {
  const { link } = session;
  const facts = await readFacts(link);
  const now = new Date(new Reader(await session.text("time", 0)).f64());
  const { durability, because } = durabilityOf(link, facts);
  return {
    now,
    engine: facts.engine,
    schemaVersion: layoutVersion,
    details: {
      servers: link.where,
      mode: link.mode,
      slots: String(session.slots),
      durability: `${durability}: ${because}`,
      appendonly: facts.appendonly ?? "unknown",
      appendfsync: facts.appendfsync ?? "unknown",
      maxmemory: facts.maxmemory ?? "unknown",
      "maxmemory-policy": facts.maxmemoryPolicy ?? "unknown",
    },
    problems: [...problemsOf(facts), ...(await damageIn(session))],
  };
}

/** How many ids and keys are named. */
const mostNamed = 5;

/** What something else has written to, as far as scripts have met it. */
async function damageIn(session: Session): Promise<string[]> {
  const slots = await Promise.all(
    session.everySlot.map(async (index) => {
      const fieldsOf = async (key: string): Promise<string[]> => {
        const answer = await session.link.call("HKEYS", [`${session.keyPrefix(index)}${key}`]);
        return Array.isArray(answer) ? answer.map((field) => String(bufferOf(field))) : [];
      };
      return { records: await fieldsOf("unreadable"), keys: await fieldsOf("asides") };
    }),
  );
  const records = slots.flatMap((slot) => slot.records);
  const keys = slots.flatMap((slot) => slot.keys);
  const problems: string[] = [];
  if (records.length > 0)
    problems.push(
      `${records.length} job record${records.length === 1 ? "" : "s"} cannot be read (${named(records)}): something else has written to the store, and they are dead; look at one with "escapement explain", and delete it when it is no longer needed`,
    );
  if (keys.length > 0)
    problems.push(
      `${keys.length} key${keys.length === 1 ? "" : "s"} of this namespace had been overwritten (${named(keys)}): its contents are gone, and everything else continues without them; what overwrote a key of another type is kept under "${session.keyPrefix(0)}aside:…"; when you have looked at it, delete the key "${session.keyPrefix(0)}asides"`,
    );
  return problems;
}

function named(names: readonly string[]): string {
  const some = names.slice(0, mostNamed).map((name) => JSON.stringify(name));
  return [...some, ...(names.length > mostNamed ? ["…"] : [])].join(", ");
}

/** Settings that weaken a promise and that an operator could change. */
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
      `appendfsync is ${facts.appendfsync}: a power failure loses the latest acknowledged writes; set it to always`,
    );
  }
  return problems;
}
