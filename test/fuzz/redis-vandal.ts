import { Redis } from "ioredis";
import type { StoreFactory } from "../../src/store/opening.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { testbed } from "../../testbed/index.ts";
import { overNetwork } from "../behaviour/over-network.ts";

export const redisServer = await testbed.redis();

/** What something else does to all keys of one kind: to each value, or to the key itself. */
export interface Damage {
  /** Such as `jobs`, `list` or `trail`. */
  readonly kind: string;
  readonly what: string;
  apply(client: Redis, key: string): Promise<void>;
}

export interface RedisVandal {
  readonly store: StoreFactory;
  /** Everything that can be done to the keys that there are now. */
  damages(): Promise<readonly Damage[]>;
  apply(damage: Damage): Promise<void>;
  close(): Promise<void>;
}

/** A store without these is another store, or none: its version, how many slots it has, and the number of its last job. */
const foundations: readonly string[] = ["meta"];
/** Records that the scripts pack: these are cut and written over at every place. */
const packed: readonly string[] = [
  ...[
    "jobs",
    "fronts",
    "schedules",
    "partitions",
    "queues",
    "nodes",
    "claimers",
    "windows",
    "historywriters",
  ],
];
const turns = 6;
const step = 3;

let places = 0;

export async function openRedisVandal(): Promise<RedisVandal> {
  const client = new Redis(redisServer.url);
  const prefix = `${redisServer.name}-vandal-${process.pid}-${++places}`;
  const store = overNetwork((clock) => redis({ url: redisServer.url, prefix, clock }));
  const ours = async (): Promise<string[]> =>
    (await client.keys(`{${prefix}:*`)).filter((key) => !foundations.includes(kindOf(key))).sort();
  return {
    store,
    async damages() {
      const types = new Map<string, string>();
      for (const key of await ours()) types.set(kindOf(key), await client.type(key));
      return [...types].flatMap(([kind, type]) => damagesOf(kind, type));
    },
    async apply(damage) {
      for (const key of await ours()) if (kindOf(key) === damage.kind) await damage.apply(client, key);
    },
    async close() {
      await store.closeAll();
      const keys = await client.keys(`{${prefix}:*`);
      if (keys.length > 0) await client.del(keys);
      client.disconnect();
    },
  };
}

/** The word after the hash tag. */
function kindOf(key: string): string {
  return /\}:([a-z]+)/.exec(key)?.[1] ?? key;
}

function damagesOf(kind: string, type: string): Damage[] {
  const wrongType: Damage = {
    kind,
    what: "another type",
    async apply(client, key) {
      await client.del(key);
      await (type === "string" ? client.rpush(key, "x") : client.set(key, "x"));
    },
  };
  if (type === "hash") return [...valueDamages(kind, hashValues), wrongType];
  if (type === "list") return [...valueDamages(kind, listValues), wrongType];
  if (type === "zset")
    return [...valueDamages(kind, members), ...scoreDamages(kind), extraMember(kind), wrongType];
  if (type === "set") return [...valueDamages(kind, setMembers), wrongType];
  return [...valueDamages(kind, wholeValue), wrongType];
}

/** @param index of the value, so that one damage tries several places at once. */
type Change = (value: Buffer, index: number) => Buffer;
/** Changes every value of a key of some type. */
type ChangeAll = (client: Redis, key: string, change: Change) => Promise<void>;

const changes: Readonly<Record<string, Change>> = {
  empty: () => Buffer.alloc(0),
  "no json": () => Buffer.from("{not json"),
  "a huge number": () => Buffer.from("9000000000000000000000"),
  "a number below zero": () => Buffer.from("-7"),
  "cut in half": (value) => value.subarray(0, value.length / 2),
  "all ones": (value) => Buffer.alloc(value.length, 0xff),
  "all zeros": (value) => Buffer.alloc(value.length, 0),
};

function valueDamages(kind: string, changeAll: ChangeAll): Damage[] {
  const some = Object.entries(changes);
  if (packed.includes(kind)) {
    for (let turn = 0; turn < turns; turn += 1) {
      const placeOf = ({ length }: Buffer, index: number): number =>
        length === 0 ? 0 : (turn * step + index * step * turns) % length;
      some.push([`cut, turn ${turn}`, (value, index) => value.subarray(0, placeOf(value, index))]);
      some.push([`ones, turn ${turn}`, (value, index) => overwrite(value, placeOf(value, index), 0xff)]);
      some.push([`zeros, turn ${turn}`, (value, index) => overwrite(value, placeOf(value, index), 0)]);
    }
  }
  return some.map(([what, change]) => ({
    kind,
    what,
    apply: (client, key) => changeAll(client, key, change),
  }));
}

function overwrite(value: Buffer, place: number, byte: number): Buffer {
  const changed = Buffer.from(value);
  return changed.fill(byte, Math.min(place, value.length), Math.min(place + 4, value.length));
}

async function hashValues(client: Redis, key: string, change: Change): Promise<void> {
  for (const [index, field] of (await client.hkeysBuffer(key)).entries()) {
    const value = (await client.hgetBuffer(key, field)) ?? Buffer.alloc(0);
    await client.hset(key, field, change(value, index));
  }
}

async function listValues(client: Redis, key: string, change: Change): Promise<void> {
  const list = await client.lrangeBuffer(key, 0, -1);
  for (const [index, value] of list.entries()) await client.lset(key, index, change(value, index));
}

async function members(client: Redis, key: string, change: Change): Promise<void> {
  for (const [index, member] of (await client.zrangeBuffer(key, "0", "-1")).entries()) {
    const score = String(await client.zscore(key, member));
    await client.zrem(key, member);
    await client.zadd(key, score, change(member, index));
  }
}

async function setMembers(client: Redis, key: string, change: Change): Promise<void> {
  for (const [index, member] of (await client.smembersBuffer(key)).entries()) {
    await client.srem(key, member);
    await client.sadd(key, change(member, index));
  }
}

async function wholeValue(client: Redis, key: string, change: Change): Promise<void> {
  await client.set(key, change((await client.getBuffer(key)) ?? Buffer.alloc(0), 0));
}

function scoreDamages(kind: string): Damage[] {
  return ["-inf", "-1", "0", "9e15", "+inf"].map((score) => ({
    kind,
    what: `scores of ${score}`,
    async apply(client, key) {
      for (const member of await client.zrangeBuffer(key, "0", "-1")) await client.zadd(key, score, member);
    },
  }));
}

function extraMember(kind: string): Damage {
  return {
    kind,
    what: "garbage among its members",
    async apply(client, key) {
      await client.zadd(key, 0, "x", 0, "", 1, "\u0000\u0000\u0000\u0000\u0000\u0000nobody");
    },
  };
}
