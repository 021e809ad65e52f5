// A transport of your own: appends each message to a file, as a line of JSON. It passes the conformance suite of transports
// (file-transport.test.ts).

// #region transport
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import type {
  Message,
  PublishOptions,
  PublishResult,
  Route,
  Transport,
  TransportContext,
} from "../../src/index.ts";

const mostBytes = 1_000_000;

/** A route: jobs are appended to the file at this path, in a folder that exists. */
export function appendTo(path: string): Route {
  return {
    // Routes into one folder share a transport. Opening it touches no file.
    transport: { kind: "file", address: dirname(path), open: async ({ clock }) => new FileTransport(clock) },
    destination: path,
    dispatchTimeoutMs: 30_000,
  };
}

class FileTransport implements Transport {
  readonly #clock: TransportContext["clock"];
  /** Batches are written one after the other, so the messages of a key stay in order. */
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(clock: TransportContext["clock"]) {
    this.#clock = clock;
  }

  async publish(messages: readonly Message[], { timeoutMs }: PublishOptions): Promise<PublishResult[]> {
    const deadline = this.#clock.monotonic() + timeoutMs;
    const results = new Map<Message, PublishResult>();
    const fitting = messages.filter((message) => {
      const fits = Buffer.byteLength(message.body) <= mostBytes;
      if (!fits) results.set(message, refused("the message is too large", true));
      return fits;
    });
    const writes = [...Map.groupBy(fitting, ({ destination }) => destination)].map(async ([path, own]) => {
      const work = this.#last.then(() => this.#write(path, own, deadline));
      this.#last = work;
      const result = await this.#before(deadline, work);
      for (const message of own) results.set(message, result);
    });
    await Promise.all(writes);
    return messages.map((message) => results.get(message) ?? refused("it was not sent"));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#last;
  }

  /** Nothing was written before the file is open: until then it is a refusal. After that, only the sync says whether it arrived. */
  async #write(path: string, messages: readonly Message[], deadline: number): Promise<PublishResult> {
    if (this.#isClosed) return refused("the transport is closed");
    if (this.#clock.monotonic() >= deadline) return refused("not sent in time");
    let file: FileHandle;
    try {
      file = await open(path, "a");
    } catch (cause) {
      return refused(`the file ${path} cannot be opened`, false, cause);
    }
    try {
      // It begins with a line break, because an append that failed may have left half a line.
      await file.appendFile(`\n${messages.map((message) => JSON.stringify(message)).join("\n")}`);
      await file.datasync();
      return { kind: "acknowledged" };
    } catch (cause) {
      return { kind: "ambiguous", error: new Error(`writing to ${path} failed`, { cause }) };
    } finally {
      await file.close().catch(() => {});
    }
  }

  /** A write that hangs has no answer in time, and may still arrive. */
  async #before(deadline: number, work: Promise<PublishResult>): Promise<PublishResult> {
    const { promise, resolve } = Promise.withResolvers<PublishResult>();
    const late: PublishResult = { kind: "ambiguous", error: new Error("no answer in time") };
    const cancel = this.#clock.after(deadline - this.#clock.monotonic(), () => resolve(late));
    try {
      return await Promise.race([work, promise]);
    } finally {
      cancel();
    }
  }
}

function refused(text: string, permanent = false, cause?: unknown): PublishResult {
  return { kind: "refused", error: new Error(text, { cause }), permanent };
}
// #endregion transport
