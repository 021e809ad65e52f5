import { randomUUID } from "node:crypto";
import { connect, type Socket } from "node:net";

/** What comes back: the payload of a message, whose headers are left out. */
const answer = /^H?MSG \S+ 1 [^\r]*\r\n([\s\S]*?)\r\n/m;
const patientMs = 60_000;

/** A connection to NATS that sends bytes as they are, which a client would refuse to. */
export class RawNats {
  static readonly #open = new Map<string, RawNats>();
  readonly #socket: Socket;
  readonly #inbox = `_INBOX.${randomUUID()}`;
  #said = "";
  #isOver = false;
  #wake: () => void = () => {};

  /** What the stream answers to a publish; null when the server hung up instead. */
  static async request(url: string, subject: string, headers: Buffer, body: Buffer): Promise<string | null> {
    const known = RawNats.#open.get(url);
    const connection = known === undefined || known.#isOver ? new RawNats(url) : known;
    RawNats.#open.set(url, connection);
    return connection.#request(subject, headers, body);
  }

  static closeAll(): void {
    for (const connection of RawNats.#open.values()) connection.#socket.destroy();
    RawNats.#open.clear();
  }

  constructor(url: string) {
    const { hostname, port, username, password } = new URL(url.split(",")[0] ?? "");
    this.#socket = connect(Number(port), hostname);
    this.#socket.on("data", (data) => {
      this.#said += data;
      // The server wants to know now and then who is still there.
      if (/^PING\r\n/m.test(this.#said)) {
        this.#said = this.#said.replace(/^PING\r\n/m, "");
        this.#socket.write("PONG\r\n");
      }
      if (answer.test(this.#said)) this.#wake();
    });
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      this.#isOver = true;
      this.#wake();
    });
    const login = { verbose: false, headers: true, no_responders: true, user: username, pass: password };
    this.#socket.write(`CONNECT ${JSON.stringify(login)}\r\nSUB ${this.#inbox} 1\r\n`);
  }

  async #request(subject: string, headers: Buffer, body: Buffer): Promise<string | null> {
    if (this.#isOver) return null;
    this.#said = "";
    const isThere = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    const sizes = `${headers.length} ${headers.length + body.length}`;
    this.#socket.write(`HPUB ${subject} ${this.#inbox} ${sizes}\r\n`);
    this.#socket.write(Buffer.concat([headers, body, Buffer.from("\r\n")]));
    const timer = setTimeout(() => this.#socket.destroy(), patientMs);
    await isThere;
    clearTimeout(timer);
    return answer.exec(this.#said)?.[1] ?? null;
  }
}
