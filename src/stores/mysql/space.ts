import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../../clock.ts";
import type { NewJob, Notice, StoreContext, TransactResult } from "../../store.ts";
import { Turnstile } from "../../turnstile.ts";
import { isLost, translateError } from "./errors.ts";
import { ForeignLink, runnerOf } from "./foreign.ts";
import { guard } from "./guard.ts";
import { durabilityOf, knowsSkipLocked, readSettings } from "./health.ts";
import { hasSchema, type Identity, identify, lookUpIdentity, missingSchema } from "./identity.ts";
import { UnknownLine } from "./lines.ts";
import type { Link } from "./link.ts";
import { migrate } from "./migrate.ts";
import { type Hub, hubOf } from "./notices.ts";
import type { Connections } from "./pool.ts";
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
import { maxIdleSeconds, type Transaction, Transactions } from "./transactions.ts";
import { Watch } from "./watch.ts";

interface SpaceOptions {
  readonly connections: Connections;
  readonly tablePrefix: string;
  readonly context: StoreContext;
  readonly clock: Clock | null;
  /** Null: what the server can. */
  readonly skipLocked: boolean | null;
}

/** Migrations may have to wait for each other, and for large tables. */
const migrateMs = 10 * 60_000;
const maxJitterMs = 5;
/** How many lines that are not known a verb finds, one after the other. */
const maxUnknownLines = 100;
/** When those who wait for jobs are told of some that were enqueued in a caller's transaction, whose end nothing announces. */
const tellAfterMs = [20, 200, 1_000];

/** A namespace as this handle sees it, and how verbs are run on it. */
export class Space {
  readonly #options: SpaceOptions;
  readonly #transactions: Transactions;
  readonly #hub: Hub;
  readonly #turnstile: Turnstile;
  readonly #subscriptions = new Map<() => void, (notice: Notice) => void>();
  readonly #watch: Watch;
  #identity: Identity | null = null;
  #skipLocked = false;
  #closed = false;

  constructor(options: SpaceOptions) {
    const { connections, clock, context, tablePrefix } = options;
    this.#options = options;
    this.#turnstile = new Turnstile(Math.max(1, Math.floor(connections.size / 2)));
    this.#hub = hubOf(`${connections.where}\n${tablePrefix}\n${context.namespace}`, context);
    this.#transactions = new Transactions({
      connections,
      clock,
      publish: (notices) => this.#hub.publish(notices, context.clock),
    });
    this.#watch = new Watch({
      ask: (statement) => this.#transactions.once(({ link }) => link.query(statement)),
      ns: async () => (await this.known()).ns,
      hear: (notice) => this.#tell(notice),
    });
  }

  /** Whether notices of other processes arrive: on a clock of a test's own, only what it does itself happens. */
  get listens(): boolean {
    return this.#options.clock === null;
  }

  get where(): string {
    return this.#options.connections.where;
  }

  /** Returns what is left of an acknowledged write after a power failure. */
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
    for (const unsubscribe of this.#subscriptions.keys()) unsubscribe();
    await this.#options.connections.close();
  }

  subscribe(listener: (notice: Notice) => void): () => Promise<void> {
    const unsubscribe = this.#hub.subscribe(listener);
    this.#subscriptions.set(unsubscribe, listener);
    if (this.listens) this.#watch.start();
    return async () => {
      this.#subscriptions.delete(unsubscribe);
      if (this.#subscriptions.size === 0) this.#watch.stop();
      unsubscribe();
    };
  }

  #tell(notice: Notice): void {
    for (const listener of this.#subscriptions.values()) {
      try {
        listener(notice);
      } catch (error) {
        this.#options.context.log.error({ error }, "a listener for notices of the store failed");
      }
    }
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
   * Runs a verb in a transaction of its own.
   *
   * @param asksTime false: the verb does without the session's `now`.
   */
  async write<T>(work: (session: Session) => Promise<T>, asksTime = true): Promise<T> {
    const identity = await this.known();
    const run = (): Promise<T> =>
      this.#transactions.write((transaction) => work(this.#session(identity, transaction)), asksTime);
    for (let tries = 1; ; tries += 1) {
      try {
        return await run();
      } catch (error) {
        if (!(error instanceof UnknownLine) || tries > maxUnknownLines) throw error;
        await this.#autocommit((link) => identity.lines.find(link, error.place));
      }
    }
  }

  /** Where claimers cannot pass by each other's rows, they should not come all at once. */
  async jitter(): Promise<void> {
    if (!this.#skipLocked) await delay(Math.random() * maxJitterMs);
  }

  /** Runs a question. */
  async read<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const identity = await this.known();
    return this.#transactions.read((transaction) => work(this.#session(identity, transaction)));
  }

  /** Runs a question that needs no namespace. */
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

  /** Enqueues inside a transaction that its caller began: through the store's own `tx`, or on a connection of the caller's. */
  enqueueWithin<T>(tx: unknown, jobs: readonly NewJob[], work: (session: Session) => Promise<T>): Promise<T> {
    const own = typeof tx === "object" && tx !== null ? openTransactions.get(tx) : undefined;
    if (own === undefined) return this.#enqueueForeign(tx, jobs, work);
    // At once: the caller's function may end without waiting for it.
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
    return this.#turnstile.pass(() => this.#transact(params));
  }

  async #transact<T>(params: BoundParams<T>): Promise<TransactResult<T>> {
    const identity = await this.known();
    try {
      return await this.#transactions.once(async (borrowed) => {
        const { link } = borrowed;
        const unlocked = unlock(identity.ns, params.id);
        link.write(guard.on);
        // The caller's function may take its time; it holds no lock of the store's until its end.
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
          // One that may still have the guard on is of no use to others.
          if (!isLost(error)) await link.rollback(guard.off, unlocked).catch(() => link.connection.destroy());
          throw error;
        }
      });
    } catch (error) {
      if (error instanceof StaleClaim) return { outcome: "stale" };
      throw error instanceof CallerError ? error.cause : error;
    }
  }

  /** What is known of the namespace; where the schema was made by somebody else, it is found out now. */
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
