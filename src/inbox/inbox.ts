import { type Duration, parseDuration } from "../duration.ts";
import { EscapementError } from "../errors.ts";
import { checkKey } from "../names.ts";
import { checkInteger, checkKnown } from "../options.ts";
import { type Runtime, systemRuntime } from "../runtime/runtime.ts";
import { withRetries } from "../runtime/transient.ts";
import type { EffectInbox, InboxClaim, InboxMessage, InboxOutcome, InboxStore } from "../store/inbox.ts";
import { Hold, type InboxHold } from "./hold.ts";

export interface InboxOptions {
  /** Where the markers are kept: `sqliteInbox(…)`, `postgresInbox(…)`, `mysqlInbox(…)`, `redisInbox(…)`. */
  readonly store: InboxStore;
  /** How long a copy may go without a renewal before another may start. @default "30s" */
  readonly lease?: Duration;
  /** How long a done key is remembered: longer than anything may be delivered again, redriven jobs included. @default "45d" */
  readonly retention?: Duration;
  /** The longest time after which a message may still be delivered again; the retention must be longer. @default "7d" */
  readonly longestReplay?: Duration;
}

/**
 * Makes redelivered messages harmless.
 *
 * @example
 * const inbox = createInbox({ store: sqliteInbox("app.db") });
 * await inbox.handle({ key: message.headers["idempotency-key"] }, (db) => {
 *   db.prepare("insert into payments values (?, ?)").run(message.id, message.cents);
 * });
 */
export function createInbox(options: InboxOptions): Inbox {
  return new Inbox(options, systemRuntime);
}

/** The result of {@link Inbox.hold}. */
export type InboxHeld =
  | { readonly outcome: "held"; readonly hold: InboxHold }
  | { readonly outcome: "duplicate" }
  | { readonly outcome: "busy"; readonly retryInMs: number };

/** What {@link createInbox} returns. */
export class Inbox implements EffectInbox, AsyncDisposable {
  readonly #store: InboxStore;
  readonly leaseMs: number;
  readonly retentionMs: number;
  readonly #runtime: Runtime;
  #migrated: Promise<void> | null = null;

  /** Applications call {@link createInbox}; a runtime of one's own is for tests. */
  constructor(options: InboxOptions, runtime: Runtime) {
    checkKnown(options, ["store", "lease", "retention", "longestReplay"], "createInbox");
    this.#store = options.store;
    this.leaseMs = parseDuration(options.lease ?? "30s", "lease");
    this.retentionMs = parseDuration(options.retention ?? "45d", "retention");
    this.#runtime = runtime;
    const replayMs = parseDuration(options.longestReplay ?? "7d", "longestReplay");
    if (this.retentionMs <= replayMs) {
      throw new EscapementError(
        "invalid-option",
        `expected retentionMs to be more than longestReplayMs (${replayMs}), got ${this.retentionMs}: a copy that arrives after its key was forgotten takes effect again`,
      );
    }
  }

  /** Whether the effect and the marker commit together. If not, duplicates are rare, not impossible. */
  get atomic(): boolean {
    return this.#store.atomic;
  }

  /**
   * Runs `effect` for the first copy of a message. What it writes through the handle it is given commits together with the marker.
   * When it throws, everything is undone, the next copy may try, and the error is the caller's.
   */
  async handle<T, Db = unknown>(
    message: InboxMessage,
    effect: (db: Db) => T,
  ): Promise<InboxOutcome<Awaited<T>>> {
    const begun = await this.#begin(message);
    if (begun.outcome !== "begun") return begun;
    return this.#run(begun.claim, effect as (tx: unknown) => Awaited<T>);
  }

  /**
   * Takes the key of a message for work that happens outside the inbox's transaction, and keeps it until the returned hold is committed
   * or released. What `consume` does for each message; {@link handle} is simpler where the effect is all there is.
   */
  async hold(message: InboxMessage): Promise<InboxHeld> {
    const askedAtMs = this.#runtime.clock.monotonic();
    const begun = await this.#begin(message);
    if (begun.outcome !== "begun") return begun;
    const parts = { store: this.#store, clock: this.#runtime.clock, retentionMs: this.retentionMs };
    const { claim } = begun;
    return { outcome: "held", hold: new Hold({ ...parts, claim, leaseMs: this.leaseMs, askedAtMs }) };
  }

  /** Forgets keys whose retention is over; call it periodically. Returns how many. */
  async prune(options: { readonly limit?: number } = {}): Promise<number> {
    checkKnown(options, ["limit"], "prune");
    await this.#ready();
    const limit = checkInteger(options.limit ?? 10_000, 1, 1_000_000, "limit");
    return this.#store.prune({ limit, retentionMs: this.retentionMs });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  async #begin(
    message: InboxMessage,
  ): Promise<
    | { readonly outcome: "begun"; readonly claim: InboxClaim }
    | { readonly outcome: "duplicate" }
    | { readonly outcome: "busy"; readonly retryInMs: number }
  > {
    const key = checkKey(message.key, "the key of a message");
    await this.#ready();
    const holder = this.#runtime.newId();
    const params = { key, holder, leaseMs: this.leaseMs, retentionMs: this.retentionMs };
    const begun = await withRetries(this.#runtime, () => this.#store.begin(params));
    if (begun.outcome === "done") return { outcome: "duplicate" };
    if (begun.outcome === "running") return { outcome: "busy", retryInMs: begun.retryInMs };
    return { outcome: "begun", claim: { key, token: begun.token } };
  }

  async #run<T>(claim: InboxClaim, run: (tx: unknown) => T | Promise<T>): Promise<InboxOutcome<T>> {
    const stopRenewing = this.#renew(claim);
    try {
      const committed = await this.#store.commit({ ...claim, retentionMs: this.retentionMs, run });
      if (committed.outcome === "committed") return { outcome: "handled", value: committed.value };
      // Another copy took over when this one's lease had run out; whether it is done is for the next delivery to see.
      return { outcome: "busy", retryInMs: this.leaseMs };
    } catch (error) {
      // If this fails as well, the lease runs out.
      await this.#store.release(claim).catch(() => {});
      throw error;
    } finally {
      stopRenewing();
    }
  }

  #renew(claim: InboxClaim): () => void {
    const { clock } = this.#runtime;
    let cancel = (): void => {};
    const beat = (): void => {
      cancel = clock.after(this.leaseMs / 3, () => {
        beat();
        // A renewal that fails is tried again by the next; the token guards the commit in any case.
        this.#store.extend({ ...claim, leaseMs: this.leaseMs }).catch(() => {});
      });
    };
    beat();
    return () => cancel();
  }

  #ready(): Promise<void> {
    this.#migrated ??= this.#store.migrate().catch((error: unknown) => {
      this.#migrated = null;
      throw error;
    });
    return this.#migrated;
  }
}
