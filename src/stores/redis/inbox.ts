import type { Clock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import type {
  InboxBegin,
  InboxBegun,
  InboxClaim,
  InboxCommit,
  InboxCommitted,
  InboxStore,
} from "../../store/inbox.ts";
import { Lazy } from "../lazy.ts";
import { newClient } from "./connection/connect.ts";
import { Link } from "./connection/link.ts";
import { resolveOptions, whereOf } from "./connection/options.ts";

export interface RedisInboxOptions {
  /** As for the store: `redis://…`, `redis+sentinel://…`, `redis+cluster://…`. */
  readonly url: string;
  /** Prefix of all keys. @default "escapement-inbox" */
  readonly prefix?: string;
  /** @default the server's own */
  readonly clock?: Clock;
}

/**
 * Keeps an inbox's markers in Redis. It reduces duplicates but does not exclude them: the effect is stored elsewhere, so if a holder dies, or sleeps past its
 * lease, between its effect and its marker, another copy can take effect as well.
 */
export function redisInbox(urlOrOptions: string | RedisInboxOptions): InboxStore {
  return new RedisInbox(typeof urlOrOptions === "string" ? { url: urlOrOptions } : urlOrOptions);
}

/** KEYS: the marker. ARGV: now ('' for the server's), then what the verb needs. The marker is a hash: token, holder, running (until), done (until). What something else has written there counts as none. */
const prelude = `
local now = ARGV[1]
if now == '' then local time = redis.call('TIME'); now = time[1] * 1000 + math.floor(time[2] / 1000) else now = tonumber(now) end
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
local function field(name) return redis.call('HGET', KEYS[1], name) end
local function number(name) return tonumber(field(name) or 0) or 0 end
local function held(token) return field('token') == token and number('running') > 0 end`;

const scripts = {
  begin: `${prelude}
    local done, running = number('done'), number('running')
    if not string.match(field('token') or '0', '^%d%d?%d?%d?%d?%d?%d?%d?%d?$') then redis.call('HDEL', KEYS[1], 'token') end
    if done > now then return {'done'} end
    if running > now then
      if field('holder') == ARGV[2] then return {'begun', field('token')} end
      return {'running', tostring(running - now)}
    end
    local token = redis.call('HINCRBY', KEYS[1], 'token', 1)
    redis.call('HSET', KEYS[1], 'holder', ARGV[2], 'running', now + tonumber(ARGV[3]))
    redis.call('HDEL', KEYS[1], 'done')
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
    return {'begun', tostring(token)}`,
  done: `${prelude}
    if not held(ARGV[2]) then return {'stale'} end
    redis.call('HDEL', KEYS[1], 'running')
    redis.call('HSET', KEYS[1], 'done', now + tonumber(ARGV[3]))
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
    return {'done'}`,
  lease: `${prelude}
    if not held(ARGV[2]) then return {'stale'} end
    redis.call('HSET', KEYS[1], 'running', ARGV[3] == '' and 0 or now + tonumber(ARGV[3]))
    return {'held'}`,
} as const;

class RedisInbox implements InboxStore {
  readonly atomic = false;
  readonly #options: RedisInboxOptions;
  readonly #connection = new Lazy("the inbox", () => this.#connect());

  constructor(options: RedisInboxOptions) {
    this.#options = options;
  }

  async migrate(): Promise<void> {
    await this.#connection.get();
  }

  async begin({ key, holder, leaseMs, retentionMs }: InboxBegin): Promise<InboxBegun> {
    const times = [leaseMs, leaseMs + retentionMs].map((ms) => String(Math.trunc(ms)));
    const [outcome, value] = await this.#run("begin", key, [holder, ...times]);
    if (outcome === "done") return { outcome: "done" };
    if (outcome === "running") return { outcome: "running", retryInMs: Number(value) };
    return { outcome: "begun", token: Number(value) };
  }

  async commit<T>({ key, token, retentionMs, run }: InboxCommit<T>): Promise<InboxCommitted<T>> {
    const value = await run(undefined);
    const isHeld = await this.finish({ key, token, retentionMs });
    return isHeld ? { outcome: "committed", value } : { outcome: "stale" };
  }

  async finish({ key, token, retentionMs }: InboxClaim & { readonly retentionMs: number }): Promise<boolean> {
    const [outcome] = await this.#run("done", key, [String(token), String(Math.trunc(retentionMs))]);
    return outcome === "done";
  }

  async extend({ key, token, leaseMs }: InboxClaim & { readonly leaseMs: number }): Promise<boolean> {
    const [outcome] = await this.#run("lease", key, [String(token), String(Math.trunc(leaseMs))]);
    return outcome === "held";
  }

  async release({ key, token }: InboxClaim): Promise<boolean> {
    const [outcome] = await this.#run("lease", key, [String(token), ""]);
    return outcome === "held";
  }

  /** Redis expires them itself. */
  async prune(): Promise<number> {
    return 0;
  }

  async close(): Promise<void> {
    const link = await this.#connection.close();
    link?.close();
  }

  async #run(verb: keyof typeof scripts, key: string, args: readonly string[]): Promise<string[]> {
    const { prefix = "escapement-inbox", clock } = this.#options;
    const now = clock === undefined ? "" : String(Math.trunc(clock.now()));
    const link = await this.#connection.get();
    const answer = await link.call("EVAL", [scripts[verb], "1", `${prefix}:{${key}}`, now, ...args]);
    return Array.isArray(answer) ? answer.map(String) : [];
  }

  async #connect(): Promise<Link> {
    const { connection, callTimeoutMs } = resolveOptions({ url: this.#options.url });
    const client = await newClient(connection, callTimeoutMs);
    const parts = { client, owned: true, mode: connection.mode, where: whereOf(connection), callTimeoutMs };
    const link = new Link({ ...parts, log: silentLogger });
    try {
      await link.open();
    } catch (error) {
      // It would keep trying, and no one could ever close it.
      link.close();
      throw error;
    }
    return link;
  }
}
