import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { type Answer, holderVariable, type Request, receive, send } from "./protocol.ts";

let connection: Promise<Connection> | undefined;
let ownHolder: ChildProcess | undefined;

/** Asks the holder that this run shares; a process that was not started by `npm test` gets a holder of its own. */
export async function request(body: Request): Promise<Answer> {
  connection ??= Connection.open();
  return (await connection).request(body);
}

/** Ends the servers that were started for this process alone, and waits until they have gone. */
export async function endOwnHolder(): Promise<void> {
  if (!ownHolder || ownHolder.exitCode !== null) return;
  const ended = once(ownHolder, "exit");
  ownHolder.ref();
  ownHolder.stdin?.end();
  await ended;
}

class Connection {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #requests = 0;

  static async open(): Promise<Connection> {
    const socket = connect(process.env[holderVariable] ?? (await startHolder()));
    await once(socket, "connect");
    return new Connection(socket);
  }

  constructor(socket: Socket) {
    this.#socket = socket;
    receive<Answer>(socket, ({ id, body }) => this.#waiting.get(id)?.(body));
    const end = () => {
      for (const resolve of this.#waiting.values()) resolve({ error: "the test bed has ended" });
    };
    socket.on("error", end);
    socket.on("close", end);
    socket.unref();
  }

  async request(body: Request): Promise<Answer> {
    const id = ++this.#requests;
    // Only a question that waits for its answer keeps the process alive.
    this.#socket.ref();
    const answer = await new Promise<Answer>((resolve) => {
      this.#waiting.set(id, resolve);
      send(this.#socket, { id, body });
      if (this.#socket.destroyed) resolve({ error: "the test bed has ended" });
    });
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#socket.unref();
    return answer;
  }
}

/** It ends when its input is closed, so when this process ends, in whatever way. */
async function startHolder(): Promise<string> {
  const holder = spawn(process.execPath, [join(import.meta.dirname, "holder.ts")], {
    stdio: ["pipe", "pipe", "inherit"],
    // A Ctrl-C is for this process, which may still need its servers to end in order.
    detached: true,
  });
  ownHolder = holder;
  const [chunk] = await Promise.race([
    once(holder.stdout, "data"),
    once(holder, "exit").then(() => {
      throw new Error("the test bed did not start");
    }),
  ]);
  holder.unref();
  for (const stream of [holder.stdin, holder.stdout] as unknown as Socket[]) stream.unref();
  return String(chunk).trim();
}
