import { type Clock, sleep, systemClock } from "../clock.ts";
import { type Duration, parseDuration } from "../duration.ts";
import { EscapementError } from "../errors.ts";
import { StopReason } from "../handler.ts";
import type { Delivered, SourceSession } from "../message/source.ts";
import { ConsumerFigures, unknownName } from "../observe/consumer-figures.ts";
import { checkKnown } from "../options.ts";
import { backoffMs } from "../retry.ts";
import { Semaphore } from "../runtime/semaphore.ts";
import { Burial } from "./burial.ts";
import { Dispatcher } from "./dispatch.ts";
import { Handling, type Understood } from "./handling.ts";
import type { ResolvedConsumeOptions } from "./options.ts";
import { graceMs, within } from "./within.ts";

/** What a consumer has done since it was created. */
export interface ConsumerCounts {
  readonly handled: number;
  readonly duplicates: number;
  /** Attempts that failed. */
  readonly failed: number;
  readonly dead: number;
  /** Dead messages that `deadLetter` or `onDead` refused: see `onBurialRefused`. */
  readonly unburied: number;
  /** Messages of other namespaces. */
  readonly passedOver: number;
}

const firstBusyMs = 50;
const longestBusyMs = 5_000;

/** What `consume` returns: takes messages from a source, and runs the handlers of their definitions. */
export class Consumer implements AsyncDisposable {
  readonly #options: ResolvedConsumeOptions;
  readonly #clock: Clock;
  readonly #handling: Handling;
  readonly #dispatcher: Dispatcher;
  readonly #burial: Burial;
  readonly #figures: ConsumerFigures | null;
  readonly #slots: Semaphore;
  readonly #room: Semaphore;
  readonly #inHand = new Set<Delivered>();
  readonly #working = new Set<Promise<void>>();
  readonly #lanes = new Map<string, Promise<void>>();
  /** No new work. */
  readonly #stopping = new AbortController();
  /** No work at all. */
  readonly #stopped = new AbortController();
  readonly #counts = { handled: 0, duplicates: 0, failed: 0, dead: 0, unburied: 0, passedOver: 0 };
  #session: SourceSession | null = null;
  #starting: Promise<void> | null = null;
  #running: Promise<void> | null = null;
  #stop: Promise<void> | null = null;
  #keepAlive: NodeJS.Timeout | undefined;

  /** Applications call `consume`. */
  constructor(options: ResolvedConsumeOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    const { log, around, deadLetter, onDead, concurrency, maxInHand } = options;
    this.#dispatcher = new Dispatcher(clock, log, around);
    this.#figures = options.metrics === null ? null : new ConsumerFigures(options.metrics.registry);
    this.#handling = new Handling({
      ...options,
      dispatcher: this.#dispatcher,
      clock,
      figures: this.#figures,
    });
    this.#burial = new Burial({ deadLetter, onDead, clock, log });
    this.#slots = new Semaphore(concurrency);
    this.#room = new Semaphore(maxInHand);
  }

  get counts(): ConsumerCounts {
    return { ...this.#counts };
  }

  /** What this consumer has counted, in Prometheus text format. Needs the option `metrics`. */
  async metrics(): Promise<string> {
    if (this.#figures !== null) return this.#figures.text();
    throw new EscapementError("metrics-off", "this consumer has no metrics; create it with metrics: true");
  }

  /** The port that serves `GET /metrics`; null if there is none, or not yet. */
  get metricsPort(): number | null {
    return this.#figures?.port ?? null;
  }

  /** Starts to take messages. Waits for a broker that is down; throws if a client is not installed. */
  async start(): Promise<void> {
    if (this.#starting !== null || this.#stopping.signal.aborted) {
      throw new EscapementError("already-started", "this consumer was already started; create a new one");
    }
    this.#starting = this.#begin();
    await this.#starting;
  }

  async #begin(): Promise<void> {
    const { from, log, maxInHand, metrics } = this.#options;
    if (metrics !== null) await this.#figures?.start(metrics);
    const session = await from.open({ clock: this.#clock, log, capacity: maxInHand });
    this.#session = session;
    const stopExtending = this.#extend(session);
    // The library's timers keep no process alive, but waiting for a broker must. With a custom clock nothing is real.
    if (this.#clock === systemClock) this.#keepAlive = setInterval(() => {}, 2 ** 30);
    this.#running = session
      .run((one) => this.#deliver(one), this.#stopping.signal)
      // A source gives up only when retrying is pointless.
      .catch((error: unknown) => log.error({ error, from: from.kind }, "the source failed"))
      .then(() => Promise.allSettled(this.#working))
      .then(() => {
        stopExtending();
        clearInterval(this.#keepAlive);
      });
  }

  /** Takes nothing more, lets handlers finish for `timeout`, then asks them to stop. Unfinished messages are redelivered. */
  stop(options: { readonly timeout?: Duration } = {}): Promise<void> {
    checkKnown(options, ["timeout"], "stop");
    const timeoutMs = parseDuration(options.timeout ?? "30s", "the timeout of stop");
    this.#stop ??= this.#end(timeoutMs);
    return this.#stop;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #end(timeoutMs: number): Promise<void> {
    this.#stopping.abort();
    // A half-started consumer cannot be stopped. The caller of start gets its error.
    await this.#starting?.catch(() => {});
    const running = this.#running ?? Promise.resolve();
    const isOver = await within(this.#clock, running, timeoutMs);
    if (!isOver) {
      this.#stopped.abort(new StopReason("shutdown", "the process stops"));
      await within(this.#clock, running, graceMs);
    }
    // Whatever still runs was given up, and must not keep the process alive.
    clearInterval(this.#keepAlive);
    await this.#session?.close().catch((error: unknown) => {
      this.#options.log.warn({ error }, "the source did not close cleanly");
    });
    await this.#burial.close();
    await this.#dispatcher.stop();
    await this.#figures?.stop();
  }

  /** Resolves once there is room for the next message. The message is in hand from the first moment. */
  async #deliver(one: Delivered): Promise<void> {
    this.#inHand.add(one);
    const receivedAt = this.#clock.now();
    const entered = this.#room.enter();
    const work = entered
      .then(() => this.#inOrder(one, receivedAt))
      .catch((error: unknown) => {
        this.#options.log.error({ error }, "a message was not acknowledged; it is redelivered");
      })
      .finally(() => {
        this.#inHand.delete(one);
        this.#working.delete(work);
        this.#room.leave();
      });
    this.#working.add(work);
    await entered;
  }

  /** Messages of one key are handled one at a time. */
  #inOrder(one: Delivered, receivedAt: number): Promise<void> {
    const { key } = one.message;
    if (key === "") return this.#work(one, receivedAt);
    const before = this.#lanes.get(key) ?? Promise.resolve();
    const work = before.catch(() => {}).then(() => this.#work(one, receivedAt));
    this.#lanes.set(key, work);
    return work.finally(() => {
      if (this.#lanes.get(key) === work) this.#lanes.delete(key);
    });
  }

  async #work(one: Delivered, receivedAt: number): Promise<void> {
    if (this.#handling.isOtherNamespace(one.message)) return this.#passOver(one);
    let understood: Understood;
    try {
      if (one.unreadable !== undefined) throw one.unreadable;
      understood = this.#handling.understand(one.message);
    } catch (error) {
      this.#figures?.ended(unknownName, "dead", null);
      return this.#bury(one, null, error, 0);
    }
    // A redelivered message has waited for other reasons.
    if (one.deliveries === 1) this.#figures?.received({ ...understood.facts, receivedAt });
    let failures = 0;
    let busy = 0;
    let isFirst = one.deliveries === 1;
    for (;;) {
      if (this.#stopping.signal.aborted) return one.release(failures);
      const attempt = one.deliveries + failures;
      await this.#slots.enter();
      if (this.#stopping.signal.aborted) {
        this.#slots.leave();
        return one.release(failures);
      }
      const handled = await this.#handling
        .handle(one.message, understood, {
          attempt,
          isFirst,
          receivedAt,
          stopped: this.#stopped.signal,
        })
        .finally(() => this.#slots.leave());
      if (handled.kind !== "busy") isFirst = false;
      switch (handled.kind) {
        case "handled":
          this.#counts.handled += 1;
          return one.ack();
        case "duplicate":
          this.#counts.duplicates += 1;
          return one.ack();
        case "dead":
          return this.#bury(one, understood, handled.error, failures + 1, handled.buried);
        case "failed":
          this.#counts.failed += 1;
          if (attempt >= understood.attempts) return this.#bury(one, understood, handled.error, failures + 1);
          failures += 1;
          await this.#wait(backoffMs(understood.definition.backoff, attempt, Math.random()));
          break;
        case "busy":
          busy += 1;
          // The other copy may be done long before its lease is over.
          await this.#wait(Math.min(handled.retryInMs, firstBusyMs * 2 ** Math.min(busy, 16), longestBusyMs));
          break;
        case "snoozed":
          await this.#wait(handled.delayMs);
          break;
        case "interrupted":
          await this.#wait(1_000);
          break;
      }
    }
  }

  /** Reveals nothing of the message except that there was one. */
  async #passOver(one: Delivered): Promise<void> {
    if (this.#counts.passedOver === 0) {
      const text =
        "messages of another namespace arrive here and are skipped; does that namespace have its own consumer group?";
      this.#options.log.warn({ position: one.position }, text);
    }
    this.#counts.passedOver += 1;
    this.#figures?.ended(unknownName, "passed-over", null);
    return one.ack();
  }

  async #bury(
    one: Delivered,
    understood: Understood | null,
    error: unknown,
    attemptsHere: number,
    buried?: (isBuried: boolean) => Promise<void>,
  ): Promise<void> {
    const tries = attemptsHere === 0 ? 0 : one.deliveries - 1 + attemptsHere;
    const { message, position } = one;
    const dead = { message, facts: understood?.facts ?? null, error, tries, position };
    const end = await this.#burial.bury(dead, this.#stopping.signal);
    const { onBurialRefused, log } = this.#options;
    const isKept = end === "refused" && onBurialRefused === "keep";
    await buried?.(end !== "stopped" && !isKept);
    if (end === "stopped") return one.release(attemptsHere);
    this.#figures?.buried(end === "buried" ? end : isKept ? "kept" : "dropped");
    if (end === "buried") {
      this.#counts.dead += 1;
      return one.ack();
    }
    this.#counts.unburied += 1;
    const id = dead.facts?.id;
    if (isKept)
      return log.error({ position, id }, "a dead message was not acknowledged, and will be redelivered");
    log.error(
      { position, id },
      "a dead message was dropped: it will not be redelivered; only the broker still has it",
    );
    return one.abandon();
  }

  #wait(ms: number): Promise<void> {
    return sleep(this.#clock, ms, this.#stopping.signal);
  }

  /** Tells the broker now and then that messages in hand are still being worked on. */
  #extend(session: SourceSession): () => void {
    const everyMs = session.extendEveryMs;
    if (everyMs === null) return () => {};
    let cancel = (): void => {};
    const beat = (): void => {
      cancel = this.#clock.after(everyMs, () => {
        beat();
        for (const one of this.#inHand) {
          one.extend().catch((error: unknown) => {
            this.#options.log.debug({ error }, "a message could not be extended; it may be redelivered");
          });
        }
      });
    };
    beat();
    return () => cancel();
  }
}
