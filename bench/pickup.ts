import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../src/clock.ts";
import { createEscapement, defineJob, type Escapement } from "../src/index.ts";
import { checkStates, Dispatches, within } from "./audit.ts";
import type { Place } from "./beds/bed.ts";
import { compare, interleave, type Plan, type Run, type Scenario, series } from "./scenario.ts";
import { percentile } from "./statistics.ts";

const deadlineMs = 30_000;
/** Long enough for the system to fall asleep between two jobs, and not in step with anything. */
const pauseMs = (): number => 10 + Math.random() * 20;

/** How long a job waits from the call of enqueue to the first line of its handler, when nothing else happens. */
export const pickup: Scenario = {
  name: "pickup",
  async run(plan) {
    const runs = await interleave(plan, {
      "same process": () => measure(plan, fromHere),
      "another process": () => measure(plan, fromThere),
    });
    return Object.entries(runs).map(([label, own]) =>
      compare({
        scenario: "pickup",
        what: `enqueue to handler on an idle system, ${plan.pickups} jobs a run, from ${label} (p50 of each run)`,
        unit: "ms",
        ours: series(label, own),
        base: null,
        goal: null,
      }),
    );
  },
};

/** Sends one job, stamped with the time on the machine's monotonic clock, and returns its id. */
interface Sender extends AsyncDisposable {
  send(): Promise<string>;
}

async function measure(plan: Plan, open: (app: Escapement, place: Place) => Promise<Sender>): Promise<Run> {
  await using place = await plan.bed.open(plan.durability);
  const dispatches = new Dispatches();
  const waits: number[] = [];
  let arrived = (): void => {};
  const job = defineJob<{ sentAtMs: number }>({
    name: "stamped",
    run({ input, job: { id } }) {
      waits.push(systemClock.monotonic() - input.sentAtMs);
      dispatches.add(id);
      arrived();
    },
  });
  await using app = createEscapement({ store: place.store, jobs: [job] });
  await app.start();
  await using sender = await open(app, place);
  const ids: string[] = [];
  for (let sent = 0; sent < plan.pickups; sent += 1) {
    await delay(pauseMs());
    const arrival = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    ids.push(await within(deadlineMs, "the sending of a job", sender.send()));
    await within(deadlineMs, "the pickup of a job", arrival);
  }
  dispatches.check(ids);
  await app.result(ids.at(-1) ?? "", { timeout: deadlineMs });
  await checkStates(app, { succeeded: plan.pickups });
  return { value: percentile(waits, 0.5), p99: percentile(waits, 0.99), max: Math.max(...waits) };
}

async function fromHere(app: Escapement): Promise<Sender> {
  return {
    send: async () => (await app.enqueue("stamped", { sentAtMs: systemClock.monotonic() })).id,
    async [Symbol.asyncDispose]() {},
  };
}

async function fromThere(_app: Escapement, { address }: Place): Promise<Sender> {
  const child = fork(new URL("./pickup-sender.ts", import.meta.url), [JSON.stringify(address)], {
    execArgv: [],
  });
  await within(deadlineMs, "the start of another process", once(child, "message"));
  return {
    async send() {
      child.send("send");
      const [id] = await once(child, "message");
      return String(id);
    },
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await within(deadlineMs, "the end of another process", once(child, "exit"));
    },
  };
}
