import { type Clock, sleep, systemClock } from "../clock.ts";
import { type Duration, parseDuration } from "../duration.ts";
import { EscapementError } from "../errors.ts";
import { StopReason } from "../handler.ts";
import { ConsumerFigures, unknownName } from "../observe/consumer-figures.ts";
import { checkKnown } from "../options.ts";
import { backoffMs } from "../retry.ts";
import type { Delivered, SourceSession } from "../source.ts";
import { Burial } from "./burial.ts";
import { Dispatcher } from "./dispatch.ts";
import { Gate } from "./gate.ts";
import { Handling, type Understood } from "./handling.ts";
import type { ResolvedConsumeOptions } from "./options.ts";
import { graceMs, within } from "./within.ts";

/** What a consumer has done since it was made. */
export interface ConsumerCounts {
  readonly handled: number;
  readonly duplicates: number;
  /** Tries that failed. */
  readonly failed: number;
  readonly dead: number;
  /** Dead messages that were refused where dead messages go: see `onBurialRefused`. */
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
  readonly #slots: Gate;
  readonly #room: Gate;
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
    this.#slots = new Gate(concurrency);
    this.#room = new Gate(maxInHand);
  }

  get counts(): ConsumerCounts {
    return { ...this.#counts };
  }

  /** What this consumer has counted, in the text form of Prometheus. Needs the option `metrics`. */
  async metrics(): Promise<string> {
    if (this.#figures !== null) return this.#figures.text();
    throw new EscapementError("metrics-off", "this consumer counts nothing; make it with metrics: true");
  }

  /** The port at which `GET /metrics` is answered; null where it is not, or not yet. */
  get metricsPort(): number | null {
    return this.#figures?.port ?? null;
  }

  /** Begins to take messages. A broker that is down is waited for; a client that is not installed is an error. */
  async start(): Promise<void> {
    if (this.#starting !== null || this.#stopping.signal.aborted) {
      throw new EscapementError("already-started", "this consumer was started before; make a new one");
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
    // The library's timers keep no process alive; a broker that is waited for is a reason to stay. On a clock of one's own nothing real is.
    if (this.#clock === systemClock) this.#keepAlive = setInterval(() => {}, 2 ** 30);
    this.#running = session
      .run((one) => this.#deliver(one), this.#stopping.signal)
      // A source gives up only when trying again is pointless.
      .catch((error: unknown) => log.error({ error, from: from.kind }, "the source gave up"))
      .then(() => Promise.allSettled(this.#working))
      .then(() => {
        stopExtending();
        clearInterval(this.#keepAlive);
      });
  }

  /** Takes nothing more, lets handlers finish for `timeout`, then tells them to stop. What was not finished is delivered again. */
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
    // What is half started cannot be stopped. Whoever called start hears of its failure.
    await this.#starting?.catch(() => {});
    const running = this.#running ?? Promise.resolve();
    const isOver = await within(this.#clock, running, timeoutMs);
    if (!isOver) {
      this.#stopped.abort(new StopReason("shutdown", "the process stops"));
      await within(this.#clock, running, graceMs);
    }
    // Whatever still runs was given up, and is no reason to stay.
    clearInterval(this.#keepAlive);
    await this.#session?.close().catch((error: unknown) => {
      this.#options.log.warn({ error }, "the source did not close in order");
    });
    await this.#burial.close();
    await this.#dispatcher.stop();
    await this.#figures?.stop();
  }

  /** Resolves once there is room for the next message. It is in hand from the first moment on. */
  async #deliver(one: Delivered): Promise<void> {
    this.#inHand.add(one);
    const receivedAt = this.#clock.now();
    const entered = this.#room.enter();
    const work = entered
      .then(() => this.#inOrder(one, receivedAt))
      .catch((error: unknown) => {
        this.#options.log.error({ error }, "a message was not acknowledged; it is delivered again");
      })
      .finally(() => {
        this.#inHand.delete(one);
        this.#working.delete(work);
        this.#room.leave();
      });
    this.#working.add(work);
    await entered;
  }

  /** Messages of one key are handled one after the other. */
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
    if (this.#handling.isForeign(one.message)) return this.#passOver(one);
    let understood: Understood;
    try {
      if (one.unreadable !== undefined) throw one.unreadable;
      understood = this.#handling.understand(one.message);
    } catch (error) {
      this.#figures?.ended(unknownName, "dead", null);
      return this.#bury(one, null, error, 0);
    }
    // A message that comes again has waited for other reasons.
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

  /** Not a word of it shows here but that there was one. */
  async #passOver(one: Delivered): Promise<void> {
    if (this.#counts.passedOver === 0) {
      const text =
        "messages of another namespace come here, and are passed over; does it have a group of its own?";
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
    triesHere: number,
    buried?: (isBuried: boolean) => Promise<void>,
  ): Promise<void> {
    const tries = triesHere === 0 ? 0 : one.deliveries - 1 + triesHere;
    const { message, position } = one;
    const dead = { message, facts: understood?.facts ?? null, error, tries, position };
    const end = await this.#burial.bury(dead, this.#stopping.signal);
    const { onBurialRefused, log } = this.#options;
    const isKept = end === "refused" && onBurialRefused === "keep";
    await buried?.(end !== "stopped" && !isKept);
    if (end === "stopped") return one.release(triesHere);
    this.#figures?.buried(end === "buried" ? end : isKept ? "kept" : "dropped");
    if (end === "buried") {
      this.#counts.dead += 1;
      return one.ack();
    }
    this.#counts.unburied += 1;
    const id = dead.facts?.id;
    if (isKept) return log.error({ position, id }, "it is not acknowledged, and comes again later");
    log.error({ position, id }, "it is dropped: it is not delivered again, and only the broker still has it");
    return one.abandon();
  }

  #wait(ms: number): Promise<void> {
    return sleep(this.#clock, ms, this.#stopping.signal);
  }

  /** Tells the broker now and then that what is in hand is still in hand. */
  #extend(session: SourceSession): () => void {
    const everyMs = session.extendEveryMs;
    if (everyMs === null) return () => {};
    let cancel = (): void => {};
    const beat = (): void => {
      cancel = this.#clock.after(everyMs, () => {
        beat();
        for (const one of this.#inHand) {
          one.extend().catch((error: unknown) => {
            this.#options.log.debug({ error }, "a message could not be extended; it may be delivered again");
          });
        }
      });
    };
    beat();
    return () => cancel();
  }
}
