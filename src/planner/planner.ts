import type { Clock } from "../clock.ts";
import { isTransient } from "../errors.ts";
import type { Emit } from "../events.ts";
import type { JobState } from "../job.ts";
import { Wakeup } from "../runtime/wakeup.ts";
import type { Settings } from "../settings.ts";
import type { Notice } from "../store/notices.ts";
import type { Fire, ScheduleRecord } from "../store/schedules.ts";
import type { Store } from "../store/store.ts";
import { LeftOut } from "./left-out.ts";
import { type Plan, planSchedule } from "./plan.ts";
import { cancelReplaced } from "./replace.ts";
import { decodeSpec } from "./schedule-spec.ts";
import { traceFires } from "./traced-fires.ts";

export interface PlannerParts {
  readonly store: Store;
  readonly node: string;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly emit: Emit;
}

/** How many schedules one trip looks at and fires. */
const batch = 1_000;
/** How soon a schedule that has more to catch up with is planned again: with ten a step, a hundred a second. */
const catchUpEveryMs = 100;
/** A round that takes longer is stuck in a call: the next one begins beside it, so other schedules continue. */
const patienceMs = 5_000;
/** How many rounds may hang at once; each holds a connection until the store's own deadline. */
const maxHanging = 3;

interface RecordPlan extends Plan {
  readonly record: ScheduleRecord;
}

/**
 * Turns what is due on schedules into jobs. Every node runs one and none leads: all may plan the same occurrence, and the store lets
 * one of them win.
 */
export class Planner {
  readonly #parts: PlannerParts;
  readonly #wakeup: Wakeup;
  readonly #hanging = new Set<Promise<void>>();
  readonly #leftOut: LeftOut;
  #stopping = false;
  #running: Promise<void> | null = null;
  #unsubscribe: (() => Promise<void>) | null = null;

  constructor(parts: PlannerParts) {
    this.#parts = parts;
    this.#wakeup = new Wakeup(parts.clock);
    this.#leftOut = new LeftOut(parts.clock, parts.emit);
  }

  async start(): Promise<void> {
    this.#unsubscribe = await this.#parts.store.subscribe((notice: Notice) => {
      if (notice.kind === "schedules") this.#wakeup.wake();
    });
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#wakeup.wake();
    await this.#running;
    await Promise.all(this.#hanging);
    await this.#unsubscribe?.();
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      let waitMs: number | null = null;
      const round = this.#round().then((ms) => {
        waitMs = ms;
      });
      await this.#patiently(round);
      // A hung round may or may not have taken effect; the store lets one win.
      if (waitMs !== null || this.#hanging.size >= maxHanging) await round;
      else this.#leave(round);
      await this.#wakeup.wait(waitMs ?? 0);
    }
  }

  #leave(round: Promise<void>): void {
    this.#hanging.add(round);
    void round.then(() => this.#hanging.delete(round));
  }

  async #patiently(round: Promise<void>): Promise<void> {
    const enough = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(patienceMs, enough.resolve);
    await Promise.race([round, enough.promise]);
    cancel();
  }

  /** One round, and how long to wait after it. It never rejects. */
  async #round(): Promise<number> {
    const { settings, emit } = this.#parts;
    try {
      return Math.min(settings.pollMs, await this.#tick());
    } catch (error) {
      emit("error", { error, during: "planning schedules" });
      return settings.pollMs;
    }
  }

  /** Plans everything that is due. Returns how long until there is more to do. */
  async #tick(): Promise<number> {
    const { store } = this.#parts;
    const limit = batch + this.#leftOut.size;
    const { now, due, nextAt } = await store.dueSchedules({ limit });
    const plans = await this.#plan(
      due.filter((record) => !this.#leftOut.isStill(record)),
      now.getTime(),
    );
    await cancelReplaced(
      store,
      plans.flatMap(({ replaces }) => replaces ?? []),
    );
    const fired = plans.length === 0 ? 0 : await this.#fire(plans);
    const isMoreLeftOut = this.#leftOut.endRound();
    // If only left-out schedules came, the same answer would come at once.
    if (due.length >= limit && (fired > 0 || isMoreLeftOut)) return 0;
    if (plans.some(({ more }) => more)) return catchUpEveryMs;
    // What was just fired has a next time too, which was not known when the store was asked.
    const times = [nextAt, ...plans.map(({ fire }) => fire.advanceTo)].flatMap((at) => at?.getTime() ?? []);
    return Math.max(0, Math.min(...times) - now.getTime());
  }

  /** Returns how many the store took. One that it refuses does not block the others. */
  async #fire(plans: readonly RecordPlan[]): Promise<number> {
    const { store, node, settings } = this.#parts;
    const send = async (fires: readonly Fire[]): Promise<void> => {
      const traced = traceFires(fires, settings.telemetry);
      traced.fired(await store.fire({ node, fires: traced.fires }));
    };
    try {
      await send(plans.map(({ fire }) => fire));
      return plans.length;
    } catch (error) {
      if (isTransient(error)) throw error;
    }
    let taken = 0;
    for (const { fire, record } of plans) {
      try {
        await send([fire]);
        taken += 1;
      } catch (error) {
        if (isTransient(error)) throw error;
        this.#leftOut.add(record, error);
      }
    }
    return taken;
  }

  /** A schedule that cannot be read, since a newer version wrote it, does not block the others. */
  async #plan(due: readonly ScheduleRecord[], now: number): Promise<RecordPlan[]> {
    const { settings } = this.#parts;
    const states = await this.#previousStates(due);
    return due.flatMap((record) => {
      try {
        const previous = states.get(record.lastJobId ?? "") ?? null;
        return [{ record, ...planSchedule(record, { now, previous, disallow: settings.disallow }) }];
      } catch (error) {
        this.#leftOut.add(record, error);
        return [];
      }
    });
  }

  /** The states of the last jobs, where the overlap policy asks for them. */
  async #previousStates(due: readonly ScheduleRecord[]): Promise<ReadonlyMap<string, JobState>> {
    const ids = due.flatMap(({ lastJobId, spec }) =>
      lastJobId !== null && mindsOverlap(spec) ? lastJobId : [],
    );
    if (ids.length === 0) return new Map();
    const jobs = await this.#parts.store.get({ ids });
    return new Map(jobs.flatMap((job, index) => (job === null ? [] : [[ids[index] ?? job.id, job.state]])));
  }
}

function mindsOverlap(spec: string): boolean {
  try {
    const { overlap } = decodeSpec(spec);
    return overlap !== undefined && overlap !== "allow";
  } catch {
    // The node that plans it reports it.
    return false;
  }
}
