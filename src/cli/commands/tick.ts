import type { Command } from "commander";
import type { Escapement } from "../../app/escapement.ts";
import { type AppFlags, appCommand, withApp } from "../app.ts";
import { print } from "../output.ts";

/** How much longer than a poll, which finds whatever is due, nothing may happen before there is nothing left to do. */
const graceMs = 500;

export function tickCommand(): Command {
  return appCommand(
    "tick",
    "run what is due now, then stop: for machines that are woken by something else",
  ).action(async (flags: AppFlags) => {
    const ran = await withApp(flags, tick);
    print(flags.json, ran, () => [`${ran.succeeded} succeeded, ${ran.failed} failed, ${ran.reaped} reaped`]);
  });
}

interface Ran {
  readonly succeeded: number;
  readonly failed: number;
  readonly reaped: number;
}

async function tick(app: Escapement): Promise<Ran> {
  const ran = { succeeded: 0, failed: 0, reaped: 0 };
  // What a relay publishes ends without having started here.
  const running = new Set<string>();
  const beganAt = performance.now();
  let lastAt = beganAt;
  const happened = (): void => {
    lastAt = performance.now();
  };
  const ended =
    (what: "succeeded" | "failed" | null) =>
    ({ job: { id, token } }: { readonly job: { readonly id: string; readonly token: number } }): void => {
      running.delete(`${id} ${token}`);
      if (what !== null) ran[what] += 1;
      happened();
    };
  app.on("started", ({ job: { id, token } }) => {
    running.add(`${id} ${token}`);
    happened();
  });
  app.on("succeeded", ended("succeeded")).on("failed", ended("failed")).on("dead", ended("failed"));
  app.on("lost", ended("failed")).on("crashed", ended("failed"));
  app.on("cancelled", ended(null)).on("snoozed", ended(null)).on("stale", ended(null));
  app.on("reaped", () => {
    ran.reaped += 1;
    happened();
  });
  const { now } = await app.health();
  const names = app.definitions.map(({ name }) => name);
  await app.start();
  const isQuiet = (): boolean =>
    running.size === 0 && performance.now() - lastAt > app.settings.pollMs + graceMs;
  // What becomes due meanwhile is for the next tick: an every-second schedule would keep this one for ever.
  const isDone = async (): Promise<boolean> =>
    running.size === 0 &&
    performance.now() - beganAt > app.settings.pollMs + graceMs &&
    (await app.count({ names, states: ["waiting", "active"], runBefore: now })) === 0;
  while (!isQuiet() && !(await isDone())) await new Promise((resolve) => setTimeout(resolve, 50));
  await app.stop();
  return ran;
}
