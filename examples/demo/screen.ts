import { styleText } from "node:util";
import type { Escapement, JobFacts, JobState } from "../../src/index.ts";
import { jobStates } from "../../src/job.ts";

type Colour = Parameters<typeof styleText>[0];

/** Prints one line for each event of an app. */
export function showEvents(app: Escapement): void {
  app.on("enqueued", ({ id, name, outcome }) =>
    line("gray", "enqueued", { id, name }, outcome === "added" ? "" : outcome),
  );
  app.on("started", ({ job }) => line("cyan", "started", job, `${job.delivery}, attempt ${job.attempt}`));
  app.on("succeeded", ({ job, result, ms }) =>
    line("green", "succeeded", job, `${result} (${Math.round(ms)} ms)`),
  );
  app.on("failed", ({ job, error, retryInMs }) =>
    line("yellow", "failed", job, `${error.message}; again in ${(retryInMs / 1_000).toFixed(1)} s`),
  );
  app.on("snoozed", ({ job, delayMs }) => line("blue", "snoozed", job, `for ${delayMs / 1_000} s`));
  app.on("dead", ({ job, error, reason }) => line("red", "dead", job, `${error?.message} (${reason})`));
  app.on("lost", ({ job, reason }) => line("magenta", "lost", job, reason));
  app.on("cancelled", ({ job }) => line("gray", "cancelled", job, ""));
  app.on("released", ({ job }) => line("gray", "released", job, "not started, given back"));
  app.on("reaped", (job) => line("magenta", "reaped", job, `${job.reason}: now ${job.state}`));
  app.on("error", ({ error, during }) => line("red", "error", { id: "", name: during }, String(error)));
}

/** How many jobs are in which state, of this run and all before. */
export async function printTotals(app: Escapement): Promise<void> {
  const rows = await app.countBy(["name", "state"]);
  const states = jobStates.filter((state) => rows.some((row) => row.state === state));
  const names = [...new Set(rows.map(({ name }) => name ?? ""))].toSorted();
  const cell = (name: string, state: JobState): string =>
    String(rows.find((row) => row.name === name && row.state === state)?.count ?? "·").padStart(10);
  console.log(`\n${"totals".padEnd(16)}${states.map((state) => state.padStart(10)).join("")}`);
  for (const name of names) console.log(name.padEnd(16) + states.map((state) => cell(name, state)).join(""));
}

function line(colour: Colour, what: string, job: Pick<JobFacts, "id" | "name">, detail: string): void {
  const time = new Date().toISOString().slice(11, 23);
  const parts = [styleText("gray", time), styleText(colour, what.padEnd(10)), job.name.padEnd(16)];
  console.log([...parts, styleText("gray", job.id.slice(-8).padEnd(9)), detail].join(" ").trimEnd());
}
