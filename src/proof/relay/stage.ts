import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { sleep, systemClock } from "../../clock.ts";
import { readFacts } from "../../message/facts.ts";
import type { Broker } from "../brokers/broker.ts";
import { type BrokerTarget, brokerTarget, hostsOf, loadBroker } from "../brokers/target.ts";
import { Fleet } from "../fleet.ts";
import { readLogs } from "../node-log.ts";
import type { ConsumerPlan, MemberPlan, RoutePlan } from "../node-plan.ts";
import type { FaultProxy } from "../proxy.ts";
import { Ways } from "../ways.ts";
import type { Copy, RelayLine } from "./evidence.ts";

/** Where the jobs of a run are published. */
export interface BrokerOptions {
  /** A URL, or `http`: a receiver of the run's own. */
  readonly url: string;
  /** For a broker whose clients find their way past other proxies. */
  readonly proxy?: () => Promise<FaultProxy>;
  /** Restarts it, or the part of it that leads; only for one that was started for the run. Abruptly: as after a crash. */
  readonly restart?: (abruptly: boolean, leader: string | null) => Promise<void>;
}

export interface StageParts {
  readonly broker: BrokerOptions;
  readonly topic: string;
  readonly dispatchTimeoutMs: number;
  readonly leaseMs: number;
  /** The SQLite file of the consumers. */
  readonly inbox: string;
  /** The folder of all logs. */
  readonly logs: string;
  planFor(name: string): MemberPlan;
}

const consumers = 2;
const prefix = "c";
/** A consumer that died keeps what it had in hand for a while, the longest on Kafka. */
const patienceMs = 20_000;
const lookEveryMs = 250;
const ports: Readonly<Record<BrokerTarget["kind"], number>> = {
  "redis-streams": 6_379,
  nats: 4_222,
  kafka: 9_092,
  http: 80,
};

/** The far side of a run that publishes: the broker, the way to it, and the consumers behind it. */
export class RelayStage implements AsyncDisposable {
  readonly #parts: StageParts;
  readonly #broker: Broker | null;
  /** Past any proxy. */
  readonly #direct: RoutePlan;
  /** Null: no proxy can stand in front. */
  readonly ways: Ways | null;
  readonly #fleet: Fleet;

  /** Makes the topic, and starts the proxies. */
  static async open(parts: StageParts): Promise<RelayStage> {
    const target = brokerTarget(parts.broker.url);
    const broker = target.kind === "http" ? null : await loadBroker(target.kind);
    const url = target.kind === "http" ? `http://127.0.0.1:${await freePort()}/` : target.url;
    const { topic, dispatchTimeoutMs } = parts;
    await broker?.prepare(url, topic);
    const ways = await openWays(target, url, parts.broker.proxy);
    return new RelayStage(parts, broker, { kind: target.kind, url, topic, dispatchTimeoutMs }, ways);
  }

  constructor(parts: StageParts, broker: Broker | null, direct: RoutePlan, ways: Ways | null) {
    this.#parts = parts;
    this.#broker = broker;
    this.#direct = direct;
    this.ways = ways;
    this.#fleet = new Fleet({
      // One port has one receiver.
      size: direct.kind === "http" ? 1 : consumers,
      program: "relay/consumer",
      prefix,
      planFor: (name): ConsumerPlan => ({ ...parts.planFor(name), route: direct, inbox: parts.inbox }),
    });
  }

  /** The consumers that may be killed: a receiver by HTTP is the broker itself. */
  get consumers(): Fleet | null {
    return this.#broker === null ? null : this.#fleet;
  }

  /** For the relays. */
  get route(): RoutePlan {
    return {
      ...this.#direct,
      url: this.ways === null ? this.#direct.url : through(this.#direct.url, this.ways),
    };
  }

  async start(): Promise<void> {
    await this.#fleet.start();
  }

  /** Ends the consumers in good order. */
  async stop(): Promise<void> {
    await this.#fleet.stop();
    this.#fleet.assertSound();
  }

  /** Restarts the broker, or kills who leads it, and tells what it did; null if that is not allowed. */
  get restart(): ((abruptly: boolean) => Promise<string>) | null {
    const { restart } = this.#parts.broker;
    if (this.#broker === null) return () => this.#restartReceiver();
    if (restart === undefined) return null;
    const { url, topic } = this.#direct;
    const broker = this.#broker;
    return async (abruptly) => {
      const leader = await broker.leader(url, topic);
      await restart(abruptly, leader);
      await broker.back(url, topic);
      return `${leader === null ? "the broker" : `its leader, ${leader}`}${abruptly ? ", killed" : ", in good order"}`;
    };
  }

  async #restartReceiver(): Promise<string> {
    const [receiver] = this.#fleet.ready;
    if (receiver === undefined) return "the receiver was not there";
    await this.#fleet.kill(receiver);
    while (this.#fleet.ready.length === 0) {
      this.#fleet.assertSound();
      await sleep(systemClock, lookEveryMs);
    }
    return "the receiver, killed";
  }

  /** What reached the broker. A receiver by HTTP has what it did not refuse. */
  async copies(lines: readonly RelayLine[]): Promise<Copy[]> {
    if (this.#broker === null) return taken(lines);
    const found = await this.#broker.copies(this.#direct.url, this.#direct.topic);
    return found.map(({ headers }) => {
      const { id: job, token, attempt } = readFacts(headers);
      return { job, token, attempt, kept: true };
    });
  }

  /** Waits until the consumers have dealt with all that the broker has, as long as there is progress. */
  async settle(): Promise<void> {
    const read = () => readLogs(this.#parts.logs, prefix);
    const copies = await this.copies(read().relay);
    const copied = new Set(copies.filter(({ kept }) => kept).map(({ job }) => job));
    let left = Number.POSITIVE_INFINITY;
    let changedAtMs = systemClock.monotonic();
    while (systemClock.monotonic() - changedAtMs < patienceMs) {
      const handled = new Set(
        read()
          .lines.filter(({ what }) => what === "end")
          .map(({ job }) => job),
      );
      const now = [...copied].filter((job) => !handled.has(job)).length;
      if (now === 0) return;
      if (now !== left) changedAtMs = systemClock.monotonic();
      left = now;
      await sleep(systemClock, lookEveryMs);
    }
  }

  /** Leaves nothing behind on a broker that is not the run's own, whatever became of the run. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#fleet[Symbol.asyncDispose]();
    await this.ways?.[Symbol.asyncDispose]();
    await this.#broker?.forget(this.#direct.url, this.#direct.topic).catch(() => {});
  }
}

export function inboxFile(folder: string): string {
  return join(folder, "consumers.db");
}

/** Each request, but for those that were refused. */
function taken(lines: readonly RelayLine[]): Copy[] {
  const replies = Map.groupBy(
    lines.filter((line) => line.what === "reply"),
    refOf,
  );
  return lines.flatMap((line) => {
    if (line.what !== "receive") return [];
    const reply = replies.get(refOf(line))?.shift();
    if (reply?.taken === false) return [];
    return [{ job: line.job, token: line.token, attempt: line.attempt, kept: reply !== undefined }];
  });
}

function refOf({ job, token }: { readonly job: string; readonly token: number }): string {
  return `${job} ${token}`;
}

async function openWays(
  { kind, proxied }: BrokerTarget,
  url: string,
  proxy: BrokerOptions["proxy"],
): Promise<Ways | null> {
  if (proxy !== undefined) return new Ways(await proxy());
  if (!proxied) return null;
  const scheme = url.slice(0, url.indexOf(":"));
  const { login, hosts } = hostsOf(url, ports[kind]);
  return Ways.to(hosts.map((host) => `${scheme}://${login}${host}`));
}

/** The URL, with the proxies in the place of the hosts. */
function through(url: string, ways: Ways): string {
  const hosts = ways.urls.map((one) => hostsOf(one, 0).hosts[0] ?? "");
  return url.replace(/^([a-z+]+:\/\/(?:[^@/]*@)?)[^/?]+/, (_, start: string) => `${start}${hosts.join(",")}`);
}

/** A port that is free now: who listens there may be killed, and must come back to the same one. */
async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
