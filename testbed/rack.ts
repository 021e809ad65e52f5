import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { killUnderway } from "./command.ts";
import { chosenEdition } from "./editions/index.ts";
import { type RunningServer, startOwn, useGiven } from "./running-server.ts";
import type { ServerKind } from "./server-kind.ts";
import { provide, provideEdition } from "./software.ts";

const tmpfs = 0x01021994;

/** A server for one user: `name` is nobody else's, and `url` leads to a database of that name where there are any. */
export interface Allotment {
  readonly server: RunningServer;
  readonly name: string;
  readonly url: string;
}

/** All servers of one run: each shared one is started when it is first asked for, one after the other. */
export class Rack {
  readonly folder: string;
  readonly #say: (line: string) => void;
  readonly #shared = new Map<string, Promise<RunningServer | string>>();
  readonly #started = new Set<RunningServer>();
  readonly #announced = new Set<ServerKind>();
  readonly #missing = new Map<string, string>();
  #queue: Promise<unknown> = Promise.resolve();
  #isClosing = false;
  #names = 0;

  constructor(say: (line: string) => void) {
    this.#say = say;
    this.folder = mkdtempSync(join(diskFolder(), "escapement-testbed-"));
    // Others may pass through, to folders that are theirs alone.
    chmodSync(this.folder, 0o711);
  }

  /** The servers that could not be had, and why. */
  get missing(): ReadonlyMap<string, string> {
    return this.#missing;
  }

  /** A place of one's own on the shared server of a kind, or why there is none. */
  async open(kind: ServerKind): Promise<Allotment | string> {
    const server = await this.#share(kind);
    if (typeof server === "string") return server;
    const name = `escapement_${randomBytes(3).toString("hex")}_${++this.#names}`;
    if (!kind.allot) return { server, name, url: server.url };
    if (server.source === "environment") server.borrowed.add(name);
    return { server, name, url: await kind.allot(server.url, name, server.tools) };
  }

  /** A server of one's own, to restart and to kill. */
  async openPrivate(kind: ServerKind): Promise<Allotment | string> {
    const server = await this.#startPrivate(kind);
    return typeof server === "string" ? server : { server, name: "escapement", url: server.url };
  }

  async discard(server: RunningServer): Promise<void> {
    this.#started.delete(server);
    await server.discard();
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.allSettled([...this.#started].map((server) => server.discard()));
    killUnderway();
    await this.#queue.catch(() => {});
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }

  #share(kind: ServerKind): Promise<RunningServer | string> {
    const known = this.#shared.get(kind.name);
    if (known) return known;
    const opening = this.#openShared(kind);
    this.#shared.set(kind.name, opening);
    return opening;
  }

  async #openShared(kind: ServerKind): Promise<RunningServer | string> {
    const url = process.env[kind.variable];
    if (url) {
      const server = await this.#inTurn(() => useGiven(kind, url));
      this.#started.add(server);
      this.#announce(server);
      return server;
    }
    const upstream = kind.behind && (await this.#share(kind.behind));
    if (typeof upstream === "string") return this.#miss(kind, upstream);
    return this.#inTurn(() => this.#start(kind, upstream?.url));
  }

  /** What it stands in front of is as private as it is, and part of it. */
  async #startPrivate(kind: ServerKind): Promise<RunningServer | string> {
    const upstream = kind.behind && (await this.#startPrivate(kind.behind));
    if (typeof upstream === "string") return upstream;
    const server = await this.#inTurn(() => this.#start(kind, upstream?.url));
    if (!upstream) return server;
    if (typeof server !== "string") return inFrontOf(upstream, server);
    await this.discard(upstream);
    return server;
  }

  async #start(kind: ServerKind, upstreamUrl: string | undefined): Promise<RunningServer | string> {
    if (this.#isClosing) return "the test bed is closing";
    const begunAt = Date.now();
    const edition = chosenEdition(kind.name);
    const tools = await (edition ? provideEdition(edition, kind.software) : provide(kind.software));
    if (typeof tools === "string") return this.#miss(kind, tools);
    for (let attempt = 1; ; attempt++) {
      if (this.#isClosing) return "the test bed is closing";
      try {
        const server = await startOwn(kind, tools, this.folder, upstreamUrl);
        this.#started.add(server);
        if (this.#isClosing) await server.discard();
        this.#announce(server, `, started in ${((Date.now() - begunAt) / 1_000).toFixed(1)} s`);
        return server;
      } catch (error) {
        // Somebody else may have taken the port that was free a moment ago.
        if (attempt === 2) return this.#miss(kind, `it did not start: ${(error as Error).message}`);
      }
    }
  }

  /** One line for each kind, however many private servers there are of it. */
  #announce(server: RunningServer, more = ""): void {
    if (!this.#announced.has(server.kind)) this.#say(`${describe(server)}${more}`);
    this.#announced.add(server.kind);
  }

  #miss(kind: ServerKind, reason: string): string {
    if (!this.#isClosing && !this.#missing.has(kind.name)) {
      this.#missing.set(kind.name, reason);
      this.#say(`${kind.name}: not to be had: ${reason}`);
    }
    return reason;
  }

  /** Starts cost all of a small machine's cores, and apt-get can run only once. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#queue.catch(() => {}).then(work);
    this.#queue = turn;
    return turn;
  }
}

function inFrontOf(upstream: RunningServer, server: RunningServer): RunningServer {
  return {
    ...server,
    daemons: [...upstream.daemons, ...server.daemons],
    async discard() {
      await server.discard();
      await upstream.discard();
    },
  };
}

function describe({ kind, version, source, from }: RunningServer): string {
  return `${kind.name} ${version} (${source}: ${from})`;
}

/** The usual temporary folder, unless that is memory: flushing to disk has to cost what it costs. */
function diskFolder(): string {
  return statfsSync(tmpdir()).type === tmpfs ? "/var/tmp" : tmpdir();
}
