import type { Command } from "commander";
import type { Escapement } from "../../app/escapement.ts";
import type { Job } from "../../job.ts";
import { findWrongCounts, type WrongCount } from "../../operations/recount.ts";
import { type AppFlags, appCommand, here, withApp } from "../app.ts";
import { type Finding, findingsOf } from "../findings.ts";
import { type Line, Painted, printList } from "../output.ts";
import { ProgressBar } from "../progress-bar.ts";

/** What a broker refused is retried within this time. */
const soonMs = 3_600_000;
/** Each is read with its input. */
const mostLookedAt = 100;

const marks = {
  ok: new Painted("ok  ", "green"),
  warning: new Painted("WARN", "yellow"),
  problem: new Painted("FAIL", "red"),
} as const satisfies Record<Finding["level"], Painted>;

interface DoctorFlags extends AppFlags {
  readonly recount?: boolean;
}

export function doctorCommand(): Command {
  return appCommand(
    "doctor",
    "find what weakens a guarantee or keeps jobs from running, and what to do about it",
  )
    .option("--recount", "also compare the kept counts with the jobs, which reads every job")
    .action(async (flags: DoctorFlags) => {
      const findings = await withApp(flags, "ask", async (app) => [
        ...(await examine(app)),
        ...(flags.recount === true ? [countFinding(await recount(app, flags))] : []),
      ]);
      printList(flags.json, findings, () =>
        findings.flatMap(({ level, what, advice }): Line[] => [
          [marks[level], `  ${what}`],
          ...(advice === null ? [] : [`      → ${here(advice, flags)}`]),
        ]),
      );
      if (findings.some(({ level }) => level === "problem")) process.exitCode = 1;
    });
}

/** The store reads all jobs for one answer, so all there is to show is how many, and the time. */
async function recount(app: Escapement, { json }: AppFlags): Promise<readonly WrongCount[]> {
  const jobs = await app.count();
  const what = `counting ${jobs === 1 ? "1 job" : `${jobs} jobs`}`;
  return new ProgressBar(json !== true).during(what, () => findWrongCounts(app));
}

function countFinding(wrong: readonly WrongCount[]): Finding {
  const [first] = wrong;
  if (first === undefined) return { level: "ok", what: "the kept counts match the jobs", advice: null };
  const { state, name, queue, kept, real } = first;
  const such = `${state} jobs of ${JSON.stringify(name)} in the queue ${JSON.stringify(queue)}: ${kept} are kept, and there are ${real}`;
  return {
    level: "problem",
    what: `${wrong.length} of the kept counts are wrong, so screens and metrics are wrong too; ${such}. Did something else write to the store's tables? Jobs run anyway`,
    advice: null,
  };
}

async function examine(app: Escapement): Promise<Finding[]> {
  const askedAt = Date.now();
  const health = await app.health();
  const answeredAt = Date.now();
  const [counts, oldest, nodes, queues, schedules] = await Promise.all([
    app.countBy(["queue", "name", "state"]),
    oldestWaiting(app, health.now),
    app.nodes(),
    app.queues(),
    app.schedules(),
  ]);
  return findingsOf({
    health,
    // The store's clock was read somewhere between the two.
    clockOffsetMs: { least: health.now.getTime() - answeredAt, most: health.now.getTime() - askedAt },
    definitions: app.definitions,
    settings: app.settings,
    counts,
    oldest,
    nodes,
    queues,
    schedules,
  });
}

/** Where routes are known, only jobs with one: a backlog of the others would hide them. */
async function oldestWaiting(app: Escapement, now: Date): Promise<readonly Job[]> {
  const routed = app.definitions.flatMap(({ name, route }) => (route === null ? [] : name));
  const { jobs } = await app.list(
    {
      states: ["waiting"],
      runBefore: new Date(now.getTime() + soonMs),
      ...(routed.length === 0 ? {} : { names: routed }),
    },
    { limit: mostLookedAt, order: "oldest" },
  );
  return jobs;
}
