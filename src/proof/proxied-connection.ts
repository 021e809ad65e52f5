import type { Socket } from "node:net";

/** What happens to the bytes of one direction: sent on, kept for later, or lost. */
export type Handling = "forward" | "hold" | "swallow";

const mostQueuedBytes = 1024 * 1024;

/** One client's connection through the proxy: two tracks that end together. */
export class ProxiedConnection {
  readonly #sockets: readonly Socket[];
  readonly #requests: Track;
  readonly #replies: Track;

  constructor(client: Socket, server: Socket, latencyMs: () => number) {
    this.#sockets = [client, server];
    this.#requests = new Track(client, server, latencyMs);
    this.#replies = new Track(server, client, latencyMs);
    for (const socket of this.#sockets) {
      socket.setNoDelay(true);
      socket.on("error", () => this.reset());
    }
  }

  get hasLostBytes(): boolean {
    return this.#requests.hasLostBytes || this.#replies.hasLostBytes;
  }

  handle(requests: Handling, replies: Handling): void {
    this.#requests.handle(requests);
    this.#replies.handle(replies);
  }

  reset(): void {
    this.#requests.close();
    this.#replies.close();
    for (const socket of this.#sockets) {
      // A socket that has sent its end cannot be reset any more: libuv refuses, and Node's event loop then spins.
      if (socket.writableEnded) socket.destroy();
      else socket.resetAndDestroy();
    }
  }
}

/** One direction. What it cannot send on is left in the sender's socket, so that nothing grows here. */
class Track {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #latencyMs: () => number;
  readonly #queue: { readonly chunk: Buffer | undefined; readonly dueAtMs: number }[] = [];
  #queuedBytes = 0;
  #handling: Handling = "hold";
  #timer: NodeJS.Timeout | undefined;
  #hasLostBytes = false;

  constructor(from: Socket, to: Socket, latencyMs: () => number) {
    this.#from = from;
    this.#to = to;
    this.#latencyMs = latencyMs;
    from.on("data", (chunk) => this.#take(chunk));
    from.on("end", () => this.#take(undefined));
    to.on("drain", () => this.#regulate());
    from.pause();
  }

  get hasLostBytes(): boolean {
    return this.#hasLostBytes;
  }

  handle(handling: Handling): void {
    this.#handling = handling;
    this.#flush();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#queue.length = 0;
  }

  /** An end (no chunk) waits in the queue like everything else: it must not overtake the bytes before it. */
  #take(chunk: Buffer | undefined): void {
    if (this.#handling === "swallow" && chunk) {
      this.#hasLostBytes = true;
      return;
    }
    // A latency that was made smaller must not let later bytes overtake earlier ones.
    const dueAtMs = Math.max(performance.now() + this.#latencyMs(), this.#queue.at(-1)?.dueAtMs ?? 0);
    this.#queue.push({ chunk, dueAtMs });
    this.#queuedBytes += chunk?.length ?? 0;
    this.#flush();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    if (this.#handling !== "hold") {
      for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
        const waitMs = next.dueAtMs - performance.now();
        if (waitMs > 0) {
          this.#timer = setTimeout(() => this.#flush(), Math.ceil(waitMs));
          break;
        }
        this.#queue.shift();
        this.#queuedBytes -= next.chunk?.length ?? 0;
        if (next.chunk) this.#to.write(next.chunk);
        else this.#to.end();
      }
    }
    this.#regulate();
  }

  #regulate(): void {
    const mustWait =
      this.#handling === "hold" || this.#to.writableNeedDrain || this.#queuedBytes > mostQueuedBytes;
    if (mustWait) this.#from.pause();
    else this.#from.resume();
  }
}
