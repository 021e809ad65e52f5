import type { Clock } from "../../clock.ts";
import type { Semaphore } from "../../runtime/semaphore.ts";
import type { TransactParams, TransactResult } from "../../store/claims.ts";
import type { EnqueueParams, EnqueueResult } from "../../store/jobs.ts";
import type { Notice } from "../../store/notices.ts";
import type {
  Capabilities,
  Health,
  PendingMigration,
  StoreAddress,
  StoreContext,
} from "../../store/opening.ts";
import { transactionSemaphore } from "../transaction-semaphore.ts";
import { callersRun } from "./caller/run.ts";
import { quote } from "./connection/encode.ts";
import type { Link, RunStatement } from "./connection/link.ts";
import { TurnsVacuum } from "./connection/turns-vacuum.ts";
import { enqueue, enqueueInside } from "./enqueue.ts";
import { health } from "./health.ts";
import { ClaimedSeqs } from "./jobs/claimed-seqs.ts";
import { migrate, pendingMigrations } from "./migrate.ts";
import { Channel } from "./notices.ts";
import { type Functions, FunctionsUse } from "./schema/functions.ts";
import { isCurrent, type Layout, readState, refuseMissing, type SchemaState } from "./schema/state.ts";
import type { Session } from "./session.ts";
import { transact } from "./transact.ts";

export interface HandleParts {
  readonly link: Link;
  readonly context: StoreContext;
  readonly schema: string;
  readonly functions: Functions;
  readonly capabilities: Capabilities;
  readonly address: StoreAddress | null;
  /** The store's clock, if it is not the server's. */
  readonly clock: Clock | null;
  /** How many callers' transactions may each hold a connection at the same time. */
  readonly transactions: number;
}

/** How long a migration may take, including the wait for another node's. */
const migrationMs = 120_000;

/** An open namespace: how each verb gets its session. Most verbs are one statement that calls a function of the schema. */
export class Handle {
  readonly vacuum: TurnsVacuum;
  readonly #parts: HandleParts;
  readonly #channel: Channel;
  readonly #semaphore: Semaphore;
  readonly #claimed = new ClaimedSeqs();
  readonly #layout: Layout;
  readonly #use: FunctionsUse;
  #state: SchemaState;

  /** Opens a handle. If the schema exists, it works without {@link migrate}. */
  static async open(parts: HandleParts): Promise<Handle> {
    const { link, schema, functions, context } = parts;
    const layout = { schema, functions, namespace: context.namespace, place: link.place };
    return new Handle(parts, layout, await readState(link.run, layout));
  }

  constructor(parts: HandleParts, layout: Layout, state: SchemaState) {
    const { link, schema, functions, context, capabilities } = parts;
    this.#parts = parts;
    this.#layout = layout;
    this.#state = state;
    this.#use = new FunctionsUse({ run: link.run, schema, functions }, context.clock, context.log);
    if (state.isUseNoted) this.#use.isNoted();
    this.#channel = new Channel({ link, schema, listen: capabilities.listen, ...context });
    this.#semaphore = transactionSemaphore(parts.transactions);
    this.vacuum = new TurnsVacuum(link, quote(schema), context.log);
  }

  async migrate(): Promise<void> {
    const { link } = this.#parts;
    this.#state = await readState(link.run, this.#layout);
    if (isCurrent(this.#state)) return;
    const ns = await link.borrow((client) =>
      link.within(migrate(client, this.#layout), "its migration", migrationMs),
    );
    this.#state = { ...this.#state, ns, hasFunctions: true };
  }

  async pendingMigrations(): Promise<readonly PendingMigration[]> {
    const { link } = this.#parts;
    return pendingMigrations(this.#layout, await readState(link.run, this.#layout));
  }

  async health(): Promise<Health> {
    const { link, schema, context } = this.#parts;
    const { version } = await readState(link.run, this.#layout);
    const parts = { run: link.run, schema: quote(schema), now: this.#now() };
    return health(parts, schema, version, () => context.clock.now());
  }

  async close(): Promise<void> {
    await this.#channel.close();
    await this.#parts.link.close();
  }

  subscribe(listener: (notice: Notice) => void): Promise<() => Promise<void>> {
    return this.#channel.subscribe(listener);
  }

  async enqueue({ jobs, tx, allOrNone = false, follows }: EnqueueParams): Promise<EnqueueResult[]> {
    if (tx === undefined) return enqueue(this.session(), { jobs, allOrNone, follows });
    // Nothing may be awaited before the statement is sent: the caller's next one must come after it.
    const { name: channel } = this.#channel;
    return enqueueInside(this.session(callersRun(tx)), jobs, {
      channel,
      payload: (draft) => this.#channel.payload(draft.toNotices(), false),
    });
  }

  async transact<T>(params: TransactParams<T>): Promise<TransactResult<T>> {
    const session = this.session();
    const run = (tx: unknown): T | Promise<T> => params.run(tx, (jobs) => this.enqueue({ jobs, tx }));
    return this.#semaphore.run(() => transact(session, this.#parts.link, { ...params, run }));
  }

  session(run: RunStatement = this.#parts.link.run): Session {
    const { schema, functions } = this.#layout;
    const { ns, hasFunctions } = this.#state;
    if (ns === null || !hasFunctions) refuseMissing(this.#layout, this.#state);
    this.#use.used();
    return {
      run,
      schema: quote(schema),
      functions: quote(functions.schema),
      ns,
      now: this.#now(),
      claimed: this.#claimed,
      publish: (notices) => this.#channel.publish(notices),
      runAndTell: (sql, values, notices) => this.#channel.runAndTell(sql, values, notices),
    };
  }

  #now(): number | null {
    const { clock } = this.#parts;
    return clock === null ? null : Math.trunc(clock.now());
  }
}
