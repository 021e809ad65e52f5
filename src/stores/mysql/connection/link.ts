import { EscapementError } from "../../../errors.ts";
import type { RawConnection } from "./client.ts";
import { type Dialect, fixed, hexadecimal, quoted, render, type Sql } from "./sql.ts";

/** A row as a list, in column order. Bytes come as buffers. */
export type Tuple = readonly unknown[];

/** The result of a statement. */
export interface Answer {
  readonly rows: readonly Tuple[];
  /** How many rows were changed; a row that already had its new values does not count. */
  readonly affected: number;
  /** The first number assigned to a new row. */
  readonly insertId: number;
  readonly inTransaction: boolean;
}

/** A connection for the duration of one call: statements go out in order. */
export interface Link {
  readonly dialect: Dialect;
  /** Whether {@link Answer.affected} is reliable: a caller's connection may also count rows that were only found. */
  readonly countsChanges: boolean;
  /** Statements queried in the same tick share one trip. */
  query(statement: Sql): Promise<Answer>;
  /** Goes out with the next query, or with {@link flush}, which reports its errors. */
  write(statement: Sql): void;
  flush(): Promise<void>;
}

interface Waiting {
  readonly text: string;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Above this size statements go out in several packets; the server refuses packets above max_allowed_packet. */
const maxPacketBytes = 1024 * 1024;

const ignore = (): void => {};

interface OwnLinkOptions {
  readonly connection: RawConnection;
  readonly tablePrefix: string;
  /** Whether the connection takes several statements in one packet. */
  readonly multiple: boolean;
  /** It belongs to the caller's pool: its settings are unknown. */
  readonly foreign?: boolean;
  readonly timeoutMs: number;
  /** For messages. */
  readonly where: string;
}

/** One of the store's own connections. */
export class OwnLink implements Link {
  readonly dialect: Dialect;
  readonly countsChanges: boolean;
  readonly connection: RawConnection;
  readonly #options: OwnLinkOptions;
  #waiting: Waiting[] = [];
  #scheduled = false;
  /** The packets in flight, one after the other. */
  #sent: Promise<void> = Promise.resolve();
  #failure: unknown = null;
  #closed = false;

  constructor(options: OwnLinkOptions) {
    this.#options = options;
    this.connection = options.connection;
    this.countsChanges = options.foreign !== true;
    this.dialect = {
      tablePrefix: options.tablePrefix,
      text: options.foreign === true ? hexadecimal : quoted,
    };
  }

  query(statement: Sql): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new Error("the call of this statement has ended"));
      this.#waiting.push({ text: render(statement, this.dialect), resolve, reject });
      if (this.#scheduled) return;
      this.#scheduled = true;
      // Send once everything started in this tick has added its own queries too.
      queueMicrotask(() => process.nextTick(() => this.#send()));
    });
  }

  write(statement: Sql): void {
    if (this.#closed) return;
    const reject = (error: unknown): void => {
      this.#failure ??= error;
    };
    this.#waiting.push({ text: render(statement, this.dialect), resolve: ignore, reject });
  }

  async flush(): Promise<void> {
    this.#send();
    await this.#sent;
    if (this.#failure === null) return;
    const failure = this.#failure;
    this.#failure = null;
    throw failure;
  }

  /** The same connection for work that may take longer than a call. */
  patient(timeoutMs: number): OwnLink {
    return new OwnLink({ ...this.#options, timeoutMs });
  }

  /** Takes no more statements: the connection goes to another call. */
  close(): void {
    this.#closed = true;
    for (const { reject } of this.#waiting.splice(0)) reject(new Error("the call was abandoned"));
  }

  /** Rolls the transaction back; statements not sent yet never are. */
  async rollback(...afterwards: readonly Sql[]): Promise<void> {
    this.close();
    await this.#sent;
    for (const statement of [fixed("rollback"), ...afterwards])
      await this.#trip([render(statement, this.dialect)]);
  }

  #send(): void {
    this.#scheduled = false;
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    this.#sent = this.#sent.then(() => this.#sendAll(waiting));
  }

  async #sendAll(waiting: readonly Waiting[]): Promise<void> {
    let done = 0;
    try {
      while (done < waiting.length) {
        const packet = this.#nextPacket(waiting, done);
        const answers = await this.#trip(packet.map(({ text }) => text));
        for (const [index, { resolve }] of packet.entries()) resolve(answers[index] ?? nothing);
        done += packet.length;
      }
    } catch (error) {
      for (const { reject } of waiting.slice(done)) reject(error);
    }
  }

  #nextPacket(waiting: readonly Waiting[], start: number): readonly Waiting[] {
    if (!this.#options.multiple) return waiting.slice(start, start + 1);
    let bytes = 0;
    let end = start;
    for (let next = waiting[end]; next !== undefined; next = waiting[end]) {
      bytes += next.text.length;
      if (end > start && bytes > maxPacketBytes) break;
      end += 1;
    }
    return waiting.slice(start, end);
  }

  #trip(statements: readonly string[]): Promise<readonly Answer[]> {
    const { connection, timeoutMs, where } = this.#options;
    return new Promise((resolve, reject) => {
      let isAnswered = false;
      const giveUp = (): void => {
        if (isAnswered) return;
        // Its state is unknown: the next call takes another connection.
        connection.destroy();
        reject(
          new EscapementError(
            "store-unavailable",
            `MySQL store ${where}: the server did not answer within ${timeoutMs} ms; the call may be repeated`,
          ),
        );
      };
      // After a blocked event loop, the timer is due before a waiting answer has been read: read first.
      const timer = setTimeout(() => setImmediate(giveUp), timeoutMs);
      connection.query({ sql: statements.join(";\n"), rowsAsArray: true }, (error, result) => {
        isAnswered = true;
        clearTimeout(timer);
        if (error) reject(withoutStatement(error));
        else resolve(statements.length === 1 ? [toAnswer(result)] : toAnswers(result));
      });
    });
  }
}

/** The client attaches the statement to its error; it holds inputs of jobs, which must not end up in a log. */
function withoutStatement(error: Error): Error {
  if ("sql" in error) Object.defineProperty(error, "sql", { value: undefined, enumerable: false });
  return error;
}

const nothing: Answer = { rows: [], affected: 0, insertId: 0, inTransaction: false };

function toAnswers(result: unknown): readonly Answer[] {
  return Array.isArray(result) ? result.map(toAnswer) : [toAnswer(result)];
}

const statusInTransaction = 1;

/** From mysql2's result of one statement: a list of rows, or a header. */
export function toAnswer(result: unknown): Answer {
  if (Array.isArray(result)) return { ...nothing, rows: result };
  if (typeof result !== "object" || result === null) return nothing;
  const affected = "affectedRows" in result ? Number(result.affectedRows) : 0;
  const insertId = "insertId" in result ? Number(result.insertId) : 0;
  const status = "serverStatus" in result ? Number(result.serverStatus) : 0;
  return { rows: [], affected, insertId, inTransaction: (status & statusInTransaction) !== 0 };
}
