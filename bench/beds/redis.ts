import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { systemClock } from "../../src/clock.ts";
import { silentLogger } from "../../src/log.ts";
import type { NewJob, StoredJob } from "../../src/store/jobs.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { testbed } from "../../testbed/index.ts";
import { median } from "../statistics.ts";
import type { Bed, Durability, Place, RawJob, RawLoop } from "./bed.ts";

/** A private server of the test bed; every measurement has keys of its own, which are deleted after it. */
export async function redisBed(): Promise<Bed> {
  const server = await testbed.redis({ private: true });
  if (server.skip !== false) throw new Error(server.skip);
  const client = new Redis(server.url);
  const set = async (durability: Durability): Promise<void> => {
    await client.config("SET", "appendfsync", durability === "full" ? "always" : "everysec");
  };
  return {
    name: "redis",
    goals: { drain: 0.4, enqueueConcurrent: 0.25, enqueueMany: 0.4, claimCost: 1.5 },
    async describe(durability) {
      await set(durability);
      return {
        engine: `Redis ${server.version} (${server.source})`,
        settings: `appendonly=yes appendfsync=${durability === "full" ? "always" : "everysec"}`,
        "one write": `${(await writeMs(client)).toFixed(2)} ms (median of 50, one SET)`,
      };
    },
    async open(durability) {
      await set(durability);
      return openPlace(server.url, client);
    },
    async close() {
      client.disconnect();
      await server.stop();
    },
  };
}

function openPlace(url: string, client: Redis): Place {
  const prefix = `bench-${randomUUID().slice(0, 8)}`;
  const options = { url, prefix };
  return {
    store: redis(options),
    address: {
      module: import.meta.resolve("../../src/stores/redis/index.ts"),
      options,
    },
    openRaw: () => openRaw(url, prefix),
    multiply: (ids, copies) => multiply(options, ids, copies),
    async [Symbol.asyncDispose]() {
      await client.flushall();
    },
  };
}

/** The fastest of the shapes that were tried: inputs and tokens in hashes, what is due, held and done in sorted sets, batches in one script. */
const rawInsert = `
  local time = redis.call("TIME")
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local due = {}
  for n = 1, #ARGV, 2 do
    due[n] = now
    due[n + 1] = ARGV[n]
  end
  redis.call("HSET", KEYS[1] .. "inputs", unpack(ARGV))
  redis.call("ZADD", KEYS[1] .. "due", unpack(due))`;

/** Finishes what was run, if the token still fits, and claims the next, in one trip. */
const rawTrip = `
  local key, batch, time = KEYS[1], ARGV[1], redis.call("TIME")
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if #ARGV > 1 then
    local ids, done = {}, {}
    for n = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[n] end
    local tokens = redis.call("HMGET", key .. "tokens", unpack(ids))
    for n, id in ipairs(ids) do
      if tokens[n] == ARGV[2 * n + 1] then
        done[#done + 1] = now
        done[#done + 1] = id
      end
    end
    redis.call("ZREM", key .. "held", unpack(ids))
    redis.call("ZADD", key .. "done", unpack(done))
  end
  local ids = redis.call("ZRANGEBYSCORE", key .. "due", "-inf", now, "LIMIT", 0, batch)
  if #ids == 0 then return {} end
  local inputs, tokens = redis.call("HMGET", key .. "inputs", unpack(ids)), redis.call("HMGET", key .. "tokens", unpack(ids))
  local held, raised, answer = {}, {}, {}
  for n, id in ipairs(ids) do
    local token = (tonumber(tokens[n]) or 0) + 1
    held[#held + 1] = now + 30000
    held[#held + 1] = id
    raised[#raised + 1] = id
    raised[#raised + 1] = token
    answer[#answer + 1] = id
    answer[#answer + 1] = tostring(token)
    answer[#answer + 1] = inputs[n]
  end
  redis.call("ZREM", key .. "due", unpack(ids))
  redis.call("ZADD", key .. "held", unpack(held))
  redis.call("HSET", key .. "tokens", unpack(raised))
  return answer`;

const rawDue = `
  local time = redis.call("TIME")
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local ids = redis.call("ZRANGEBYSCORE", KEYS[1] .. "due", "-inf", now, "LIMIT", 0, ARGV[1])
  if #ids == 0 then return { ids, ids } end
  return { ids, redis.call("HMGET", KEYS[1] .. "inputs", unpack(ids)) }`;

const rawForget = `
  redis.call("ZREM", KEYS[1] .. "due", unpack(ARGV))
  redis.call("HDEL", KEYS[1] .. "inputs", unpack(ARGV))`;

export async function openRaw(url: string, prefix: string): Promise<RawLoop> {
  const client = new Redis(url);
  const key = `{${prefix}-raw}:`;
  const [insert, trip, due, forget] = await Promise.all(
    [rawInsert, rawTrip, rawDue, rawForget].map(async (script) =>
      String(await client.script("LOAD", script)),
    ),
  );
  const call = (sha: string | undefined, args: (string | number)[]): Promise<unknown> =>
    client.evalsha(sha ?? "", 1, key, ...args);
  const next = async (done: readonly Held[], batch: number): Promise<Held[]> => {
    const answer = await call(trip, [batch, ...done.flatMap(({ id, token }) => [id, token])]);
    const flat = answer as string[];
    return Array.from({ length: flat.length / 3 }, (_, n) => ({
      id: flat[3 * n] ?? "",
      token: flat[3 * n + 1] ?? "",
      input: flat[3 * n + 2] ?? "",
    }));
  };
  return {
    async insert(jobs, chunk) {
      for (let start = 0; start < jobs.length; start += chunk) {
        const part = jobs.slice(start, start + chunk);
        await call(
          insert,
          part.flatMap(({ id, input }) => [id, input]),
        );
      }
    },
    async drain(batch, run) {
      let trips = 1;
      for (let claimed = await next([], batch); claimed.length > 0; claimed = await next(claimed, batch)) {
        for (const job of claimed) run(job);
        trips += 1;
      }
      return trips;
    },
    async sweep(batch, run) {
      const read = async (): Promise<[string[], string[]]> =>
        (await call(due, [batch])) as [string[], string[]];
      let trips = 1;
      for (let [ids, inputs] = await read(); ids.length > 0; [ids, inputs] = await read()) {
        await run(ids.map((id, n) => ({ id, input: inputs[n] ?? "" })));
        await call(forget, ids);
        trips += 2;
      }
      return trips;
    },
    async count() {
      return { left: await client.zcard(`${key}due`), finished: await client.zcard(`${key}done`) };
    },
    async close() {
      client.disconnect();
    },
  };
}

interface Held extends RawJob {
  readonly token: string;
}

/** Through the front door: a million takes well under a minute. */
async function multiply(
  options: { url: string; prefix: string },
  ids: readonly string[],
  copies: number,
): Promise<void> {
  const context = { namespace: "default", clock: systemClock, log: silentLogger };
  const store = await redis(options).open(context);
  const jobs = (await store.get({ ids })).filter((job) => job !== null);
  if (jobs.length !== ids.length) throw new Error("expected jobs to copy");
  const copy = (index: number): NewJob => {
    const job = jobs[index % jobs.length] as StoredJob;
    const n = Math.floor(index / jobs.length) + 1;
    return {
      ...job,
      id: `${job.id}-${n}`,
      runAt: new Date(job.runAt.getTime() + n),
      fireAt: null,
      delayMs: 0,
      expireInMs: null,
      after: [],
      afterFailure: "cancel",
      unique: null,
      debounce: null,
      retention: null,
    };
  };
  const all = jobs.length * copies;
  for (let start = 0; start < all; start += 1_000) {
    const size = Math.min(1_000, all - start);
    await store.enqueue({ jobs: Array.from({ length: size }, (_, n) => copy(start + n)) });
  }
  await store.close();
}

async function writeMs(client: Redis): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < 50; n += 1) {
    const since = performance.now();
    await client.set("probe", n);
    times.push(performance.now() - since);
  }
  await client.del("probe");
  return median(times);
}
