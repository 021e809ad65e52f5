import type { Notice } from "../../store/notices.ts";
import type { Health, PendingMigration, StoreContext } from "../../store/opening.ts";
import { NoticeDraft } from "../notice-draft.ts";
import { type Connection, connectionOf } from "./connection/connection.ts";
import type { Engine } from "./connection/engine.ts";
import {
  findIdentity,
  hasSchema,
  type Identity,
  identify,
  lookUpIdentity,
  missingSchema,
} from "./connection/identity.ts";
import { bootId } from "./connection/machine.ts";
import { type Sharing, Transactions } from "./connection/transactions.ts";
import { health } from "./health.ts";
import { migrate, pendingMigrations } from "./migrate.ts";
import type { Channel } from "./notices.ts";
import type { Session } from "./session.ts";
import { callersDatabase, whenEnded } from "./transact.ts";

/** An open namespace: how each verb gets its session, as one synchronous piece of work in one transaction. */
export class Handle {
  readonly #engine: Engine;
  readonly #context: StoreContext;
  readonly #boot: string;
  readonly #channel: Channel;
  readonly #transactions: Transactions;
  readonly #subscriptions = new Set<() => void>();
  readonly #emptyClaims = new Map<string, number>();
  #identity: Identity | null = null;
  #hasSchema = false;

  /** Opens a handle. If the schema exists, it works without {@link migrate}. */
  static async open(engine: Engine, context: StoreContext): Promise<Handle> {
    const handle = new Handle(engine, context);
    const { namespace } = context;
    const boot = handle.#boot;
    const transactions = handle.#transactions;
    handle.#hasSchema = await transactions.read((connection) => hasSchema(connection, engine.path));
    if (handle.#hasSchema && context.mustExist === true) {
      handle.#identity = await transactions.read((connection) => lookUpIdentity(connection, namespace, boot));
    } else if (handle.#hasSchema) {
      handle.#identity =
        (await transactions.read((connection) => findIdentity(connection, namespace, boot))) ??
        (await transactions.write((connection) => identify(connection, namespace, boot)));
    }
    return handle;
  }

  constructor(engine: Engine, context: StoreContext) {
    this.#engine = engine;
    this.#context = context;
    this.#boot = bootId(context.clock);
    this.#channel = engine.channel(context);
    this.#transactions = new Transactions({
      connection: engine.connection,
      clock: context.clock,
      path: engine.path,
      publish: (notices) => this.#channel.publish(notices),
    });
  }

  async migrate(): Promise<void> {
    // Without work it takes no write lock: the caller may hold it, in a transaction that is about to enqueue.
    if (this.#identity !== null && (await this.pendingMigrations()).length === 0) return;
    const { path } = this.#engine;
    const { namespace, clock } = this.#context;
    this.#identity = await this.#transactions.write((connection) => {
      migrate(connection, path, Math.trunc(clock.now()));
      return identify(connection, namespace, this.#boot);
    }, "alone");
    this.#hasSchema = true;
  }

  pendingMigrations(): Promise<readonly PendingMigration[]> {
    const now = Math.trunc(this.#context.clock.now());
    return this.#transactions.read((connection) => pendingMigrations(connection, now));
  }

  async health(): Promise<Health> {
    if (this.#engine.isMissing) this.#missing();
    return this.#transactions.read(() => health(this.#engine, this.#context.clock));
  }

  async close(): Promise<void> {
    await this.#transactions.close();
    for (const unsubscribe of this.#subscriptions) unsubscribe();
    this.#channel.close();
    this.#engine.close();
  }

  async subscribe(listener: (notice: Notice) => void): Promise<() => Promise<void>> {
    const unsubscribe = this.#channel.subscribe(listener);
    this.#subscriptions.add(unsubscribe);
    return async () => {
      this.#subscriptions.delete(unsubscribe);
      unsubscribe();
    };
  }

  write<T>(work: (session: Session) => T, sharing?: Sharing): Promise<T> {
    return this.#transactions.write(
      (connection, notices) => work(this.#session(connection, notices)),
      sharing,
    );
  }

  read<T>(work: (session: Session) => T): Promise<T> {
    return this.#transactions.read((connection) => work(this.#session(connection, new NoticeDraft())));
  }

  /** Works in a transaction that the caller has open. Its changes are published when that has ended. */
  writeWithin<T>(tx: unknown, work: (session: Session) => T): T {
    const database = callersDatabase(tx, this.#engine.connection.database);
    const notices = new NoticeDraft();
    const result = work(this.#session(connectionOf(database), notices));
    whenEnded(database, () => this.#channel.publish(notices.toNotices()));
    return result;
  }

  #missing(): never {
    const { isMissing, path } = this.#engine;
    return missingSchema(path, isMissing ? "file" : this.#hasSchema ? "namespace" : "schema");
  }

  #session(connection: Connection, notices: NoticeDraft): Session {
    const { clock } = this.#context;
    const identity = this.#identity ?? this.#missing();
    return {
      connection,
      ...identity,
      now: Math.trunc(clock.now()),
      monotonic: clock.monotonic(),
      emptyClaims: this.#emptyClaims,
      notices,
    };
  }
}
