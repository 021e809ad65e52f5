import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../../clock.ts";
import type { Semaphore } from "../../runtime/semaphore.ts";
import type { TransactResult } from "../../store/claims.ts";
import type { NewJob } from "../../store/jobs.ts";
import type { Notice } from "../../store/notices.ts";
import type { StoreContext } from "../../store/opening.ts";
import { Listeners } from "../listeners.ts";
import { transactionSemaphore } from "../transaction-semaphore.ts";
import { ForeignLink, runnerOf } from "./caller/run.ts";
import { guard } from "./connection/guard.ts";
import { hasSchema, type Identity, identify, lookUpIdentity, missingSchema } from "./connection/identity.ts";
import type { Link } from "./connection/link.ts";
import type { Connections } from "./connection/pool.ts";
import { maxIdleSeconds, type Transaction, Transactions } from "./connection/transactions.ts";
import { Watch } from "./connection/watch.ts";
import { isLost, translateError } from "./errors.ts";
import { durabilityOf, knowsSkipLocked, readSettings } from "./health.ts";
import { UnknownLine } from "./limits/lines.ts";
import { migrate } from "./migrate.ts";
import { type Hub, hubOf } from "./notices.ts";
import type { Session } from "./session.ts";
import {
  assertSameDatabase,
  type BoundParams,
  CallerError,
  openTransactions,
  StaleClaim,
  transact,
  unlock,
} from "./transact.ts";

export interface HandleOptions {
  readonly connections: Connections;
  readonly tablePrefix: string;
  readonly context: StoreContext;
  readonly clock: Clock | null;
  /** Null: whatever the server supports. */
  readonly skipLocked: boolean | null;
}

/** Migrations may have to wait for each other, and for large tables. */
const migrateMs = 10 * 60_000;
const maxJitterMs = 5;
/** How many unknown lines a verb looks up, one after the other. */
const maxUnknownLines = 100;
/** When to wake waiting claimers for jobs enqueued in a caller's transaction, whose commit the store cannot see. */
const tellAfterMs = [20, 200, 1_000];

/** An open namespace, and how verbs are run on it. */
export class Handle {
  readonly #options: HandleOptions;
  readonly #transactions: Transactions;
  readonly #hub: Hub;
  readonly #semaphore: Semaphore;
  /** Those of this handle, for what its watch sees; the hub knows them too. */
  readonly #listeners: Listeners;
  readonly #subscriptions = new Set<() => void>();
  readonly #watch: Watch;
  #identity: Identity | null = null;
  #skipLocked = false;
  #closed = false;

  constructor(options: HandleOptions) {
    const { connections, clock, context, tablePrefix } = options;
    this.#options = options;
    this.#listeners = new Listeners(context.log);
    this.#semaphore = transactionSemaphore(Math.max(1, Math.floor(connections.size / 2)));
    this.#hub = hubOf(`${connections.where}\n${tablePrefix}\n${context.namespace}`, context);
    this.#transactions = new Transactions({
      connections,
      clock,
      publish: (notices) => this.#hub.publish(notices, context.clock),
    });
    this.#watch = new Watch({
      ask: (statement) => this.#transactions.once(({ link }) => link.query(statement)),
      ns: async () => (await this.known()).ns,
      hear: (notice) => this.#listeners.notify([notice]),
    });
  }

  /** Whether notices of other processes arrive: with a test's own clock, only this process's own calls happen. */
  get listens(): boolean {
    return this.#options.clock === null;
  }

  get where(): string {
    return this.#options.connections.where;
  }

  /** Returns whether acknowledged writes survive a power failure. */
  async open(): Promise<"full" | "weak"> {
    const { context } = this.#options;
    return this.#transactions.once(async ({ link }) => {
      const settings = await readSettings(link);
      this.#skipLocked = this.#options.skipLocked ?? knowsSkipLocked(settings);
      if (await hasSchema(link, this.where)) this.#identity = await this.#find(link, context);
      return durabilityOf(settings);
    });
  }

  async migrate(): Promise<void> {
    const { namespace } = this.#options.context;
    this.#identity = await this.#transactions.once(async ({ link }) => {
      const patient = link.patient(migrateMs);
      await migrate(patient, this.where);
      return identify(patient, namespace);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watch.stop();
    for (const unsubscribe of this.#subscriptions) unsubscribe();
    await this.#options.connections.close();
  }

  subscribe(listener: (notice: Notice) => void): () => Promise<void> {
    const removals = [this.#hub.subscribe(listener), this.#listeners.add(listener)];
    const unsubscribe = (): void => {
      for (const remove of removals) remove();
    };
    this.#subscriptions.add(unsubscribe);
    if (this.listens) this.#watch.start();
    return async () => {
      this.#subscriptions.delete(unsubscribe);
      if (this.#subscriptions.size === 0) this.#watch.stop();
      unsubscribe();
    };
  }

  /** Makes sure that the lines of these jobs have numbers, before a transaction begins that may be rolled back. */
  async prepareLines(jobs: readonly NewJob[]): Promise<void> {
    const { lines } = await this.known();
    const unknown = jobs.filter((job) => !lines.knows(job));
    if (unknown.length > 0) await this.#autocommit((link) => lines.make(link, unknown));
  }

  async prepareClaimer(claimer: string): Promise<void> {
    const { claimers } = await this.known();
    if (!claimers.knows(claimer)) await this.#autocommit((link) => claimers.make(link, claimer));
  }

  /**
   * Runs a verb in its own transaction.
   *
   * @param asksTime false: the verb does not need the session's `now`.
   */
  async write<T>(work: (session: Session) => Promise<T>, asksTime = true): Promise<T> {
    const identity = await this.known();
    const run = (): Promise<T> =>
      this.#transactions.write((transaction) => work(this.#session(identity, transaction)), asksTime);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await run();
      } catch (error) {
        if (!(error instanceof UnknownLine) || attempt > maxUnknownLines) throw error;
        await this.#autocommit((link) => identity.lines.find(link, error.place));
      }
    }
  }

  /** Without SKIP LOCKED, claimers should not all arrive at once. */
  async jitter(): Promise<void> {
    if (!this.#skipLocked) await delay(Math.random() * maxJitterMs);
  }

  /** Runs a read. */
  async read<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const identity = await this.known();
    return this.#transactions.read((transaction) => work(this.#session(identity, transaction)));
  }

  /** Runs a read that needs no namespace. */
  async ask<T>(work: (session: Pick<Session, "link" | "now" | "skipLocked">) => Promise<T>): Promise<T> {
    return this.#transactions.read((transaction) => {
      const skipLocked = this.#skipLocked;
      return work({
        link: transaction.link,
        skipLocked,
        get now() {
          return transaction.now;
        },
      });
    });
  }

  /** Enqueues inside a transaction that the caller began: through the store's own `tx`, or on the caller's own connection. */
  enqueueWithin<T>(tx: unknown, jobs: readonly NewJob[], work: (session: Session) => Promise<T>): Promise<T> {
    const own = typeof tx === "object" && tx !== null ? openTransactions.get(tx) : undefined;
    if (own === undefined) return this.#enqueueForeign(tx, jobs, work);
    // Start at once: the caller's function may end without awaiting it.
    return own.run(async () => {
      await this.prepareLines(jobs);
      const value = await work(own.session);
      await own.session.link.flush();
      return value;
    });
  }

  async #enqueueForeign<T>(
    tx: unknown,
    jobs: readonly NewJob[],
    work: (session: Session) => Promise<T>,
  ): Promise<T> {
    const run = runnerOf(tx);
    await this.prepareLines(jobs);
    const identity = await this.known();
    try {
      const link = new ForeignLink(run, this.#options.tablePrefix);
      const transaction = this.#transactions.on(link);
      await assertSameDatabase(link, identity.ns, this.#options.context.namespace);
      const value = await work(this.#session(identity, transaction, true));
      await link.flush();
      void this.#tellLater(transaction.notices.toNotices());
      return value;
    } catch (error) {
      throw translateError(error, this.where);
    }
  }

  transact<T>(params: BoundParams<T>): Promise<TransactResult<T>> {
    return this.#semaphore.run(() => this.#transact(params));
  }

  async #transact<T>(params: BoundParams<T>): Promise<TransactResult<T>> {
    const identity = await this.known();
    try {
      return await this.#transactions.once(async (borrowed) => {
        const { link } = borrowed;
        const unlocked = unlock(identity.ns, params.id);
        link.write(guard.on);
        // The caller's function may take long; it holds none of the store's locks until its end.
        const transaction = this.#transactions.begin(borrowed, 0);
        link.write(guard.mark);
        try {
          const session = this.#session(identity, transaction);
          const enqueuing = this.#session(identity, transaction, true);
          const ending = (): void => this.#transactions.limitIdle(borrowed, maxIdleSeconds);
          const result = await transact(session, enqueuing, params, {
            connection: link.connection.promise(),
            ending,
            where: this.where,
          });
          transaction.commit();
          link.write(guard.off);
          link.write(unlocked);
          await link.flush();
          this.#hub.publish(transaction.notices.toNotices(), this.#options.context.clock);
          return result;
        } catch (error) {
          // A connection that may still have the guard on must not be reused.
          if (!isLost(error)) await link.rollback(guard.off, unlocked).catch(() => link.connection.destroy());
          throw error;
        }
      });
    } catch (error) {
      if (error instanceof StaleClaim) return { outcome: "stale" };
      throw error instanceof CallerError ? error.cause : error;
    }
  }

  /** What is known of the namespace; if another process made the schema, it is looked up now. */
  async known(): Promise<Identity> {
    if (this.#identity !== null) return this.#identity;
    const { context } = this.#options;
    this.#identity = await this.#transactions.once(async ({ link }) => {
      if (!(await hasSchema(link, this.where))) return missingSchema(this.where);
      return (await this.#find(link, context)) ?? missingSchema(this.where);
    });
    return this.#identity;
  }

  #find(link: Link, { namespace, mustExist }: StoreContext): Promise<Identity | null> {
    return mustExist === true ? lookUpIdentity(link, namespace) : identify(link, namespace);
  }

  #autocommit<T>(work: (link: Link) => Promise<T>): Promise<T> {
    return this.#transactions.read(({ link }) => work(link));
  }

  #session(identity: Identity, transaction: Transaction, foreign = false): Session {
    return {
      ...identity,
      link: transaction.link,
      notices: transaction.notices,
      skipLocked: this.#skipLocked,
      foreign,
      peek: (statement) =>
        foreign
          ? this.#transactions.read(({ link }) => link.query(statement))
          : transaction.link.query(statement),
      changed: new Set(),
      get now() {
        return transaction.now;
      },
      commit: () => transaction.commit(),
    };
  }

  async #tellLater(notices: readonly Notice[]): Promise<void> {
    for (const ms of tellAfterMs) {
      await delay(ms, undefined, { ref: false });
      if (this.#closed) return;
      this.#hub.publish(notices, this.#options.context.clock);
    }
  }
}
