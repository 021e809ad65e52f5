import type { Escapement } from "../../../src/app/escapement.ts";
import { sleep } from "../../../src/clock.ts";
import { EscapementError } from "../../../src/errors.ts";
import { bulkQueue } from "./handlers.ts";
import type { History } from "./history.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import type { StoreWitness } from "./store-witness.ts";
import type { PlannedChange, PlannedJob, PlannedSchedule, PlannedSpec, Workload } from "./workload.ts";

export interface ClientParts {
  readonly app: Escapement;
  readonly process: SimulatedProcess;
  readonly history: History;
  readonly witness: StoreWitness;
}

/** Brings the workload to the store, and repeats whatever it got no answer to. */
export class SimulatedClient {
  readonly #parts: ClientParts;
  #pending = 0;

  constructor(parts: ClientParts) {
    this.#parts = parts;
  }

  get isDone(): boolean {
    return this.#pending === 0;
  }

  /** @param endMs when every schedule is taken away, so that the work comes to an end. */
  plan({ jobs, schedules, changes }: Workload, endMs: number): void {
    for (const schedule of schedules) this.#at(schedule.at, () => this.#keep(schedule, endMs));
    for (const job of jobs) this.#at(job.at, () => this.#enqueue(job));
    for (const change of changes) this.#at(change.at, () => this.#change(change));
  }

  #at(ms: number, work: () => Promise<unknown>): void {
    this.#pending += 1;
    this.#parts.process.clock.after(ms, () => {
      void work().then(() => {
        this.#pending -= 1;
      });
    });
  }

  async #enqueue(job: PlannedJob): Promise<void> {
    const { app, history, witness } = this.#parts;
    const { id, delayMs, priority, after, expireInMs } = job;
    const options = {
      id,
      // The time of a debounced job comes from that.
      ...(job.kind === "debounced" ? {} : { delay: delayMs }),
      priority,
      after,
      ...(expireInMs === null ? {} : { expireIn: expireInMs }),
    };
    const receipt = await this.#insist(() => app.enqueue(job.kind, job.script, options));
    history.tell("client", `is told that ${id} is ${receipt.outcome}`);
    if (!witness.current.has(receipt.id)) {
      history.violate("an acknowledged job exists", `${receipt.id}, for ${id}, which is ${receipt.outcome}`);
    }
    history.asked.acknowledged.set(id, receipt.id);
    if (job.awaited) await this.#await(receipt.id);
  }

  /** Whoever waits for a result is told the end of the job, and nothing before it. */
  async #await(id: string): Promise<void> {
    const { app, history, witness } = this.#parts;
    const end = await this.#insist(() =>
      app.result(id, { timeout: "1h" }).then(
        () => "succeeded",
        (error: unknown) => {
          if (error instanceof EscapementError && error.code === "job-failed") return "failed";
          throw error;
        },
      ),
    );
    const state = witness.current.get(id)?.state;
    history.tell("client", `is told the result of ${id}: ${end}`);
    if ((end === "succeeded") !== (state === "succeeded") && state !== "waiting" && state !== "active") {
      history.violate("a result is the job's own", `${id} is ${state}, its client was told ${end}`);
    }
  }

  /** The life of one schedule: its changes come one after the other, as one person makes them. */
  async #keep(schedule: PlannedSchedule, endMs: number): Promise<void> {
    const { app, history, process } = this.#parts;
    const { key, kind, script, changes } = schedule;
    const put = (spec: PlannedSpec): Promise<unknown> =>
      this.#insist(() => app.schedule(key, spec, kind, script));
    const until = (ms: number): Promise<void> => sleep(process.clock, Math.max(0, ms - history.now));
    await put(schedule.spec);
    for (const change of changes) {
      await until(change.at);
      history.tell("client", `wants to ${change.kind} schedule ${key}`);
      if (change.kind === "edit") await put(change.spec);
      else if (change.kind === "remove") {
        await this.#insist(() => app.unschedule(key));
        await put(schedule.spec);
      } else {
        await this.#insist(() => app.pauseSchedule(key));
        await sleep(process.clock, change.forMs);
        await this.#insist(() => app.resumeSchedule(key));
      }
    }
    await until(endMs);
    await this.#insist(() => app.unschedule(key));
  }

  async #change(change: PlannedChange): Promise<unknown> {
    const { app, history, process } = this.#parts;
    history.tell(
      "client",
      `wants to ${change.kind} ${"job" in change ? change.job.id : "id" in change ? change.id : ""}`,
    );
    switch (change.kind) {
      case "cancel": {
        const outcomes = history.asked.cancelled.get(change.id) ?? [];
        history.asked.cancelled.set(change.id, outcomes);
        return outcomes.push(...Object.keys(await this.#insist(() => app.cancel(change.id))));
      }
      case "redrive":
        history.asked.redriven.add(change.id);
        return this.#insist(() => app.redrive(change.id));
      case "again":
        // The same id with another input is still the same job.
        return this.#enqueue({ ...change.job, script: { ...change.job.script, talks: true }, delayMs: 0 });
      case "edit": {
        const { job, delayMs } = change;
        const input = { ...job.script, talks: !job.script.talks };
        const time = delayMs === null ? {} : { delay: delayMs };
        return this.#insist(() => app.update(job.id, { input, priority: 1, ...time }));
      }
      case "pause-queue":
        await this.#insist(() => app.pauseQueue("default"));
        await sleep(process.clock, change.forMs);
        return this.#insist(() => app.resumeQueue("default"));
      case "limit-queue":
        return this.#insist(() => app.configureQueue(bulkQueue, { concurrency: change.limit }));
    }
  }

  /** A parent may not be there yet, and the store may not answer: both pass. */
  async #insist<T>(call: () => Promise<T>): Promise<T> {
    const { process } = this.#parts;
    for (;;) {
      try {
        return await call();
      } catch (error) {
        const passes =
          error instanceof EscapementError && ["store-unavailable", "unknown-parent"].includes(error.code);
        if (!passes) throw error;
        await sleep(process.clock, 700);
      }
    }
  }
}
