import { isFragile, isTerminal } from "../../../src/state.ts";
import type { StoredJob } from "../../../src/store/jobs.ts";
import { attempts } from "./handlers.ts";
import { type HandlerRun, type History, refOf } from "./history.ts";
import { type Script, spawnedId } from "./workload.ts";

export interface Evidence {
  readonly history: History;
  readonly jobs: ReadonlyMap<string, StoredJob>;
  /** Keys of what committed transactions wrote. */
  readonly effects: readonly string[];
  readonly leaseMs: number;
}

/** Judges a finished run. */
export function checkInvariants(evidence: Evidence): void {
  const { history, jobs } = evidence;
  checkRuns(evidence);
  for (const [id, stands] of history.asked.acknowledged) {
    if (!jobs.has(stands)) history.violate("an acknowledged job exists", `${stands}, which stands for ${id}`);
  }
  for (const job of jobs.values()) {
    if (!isTerminal(job.state)) {
      history.violate("every job ends", `${job.id} is still ${job.state}`);
      continue;
    }
    checkEnd(job, evidence);
    checkDispatches(job, evidence);
    checkEffects(job, evidence);
    checkSpawned(job, evidence);
  }
}

function checkRuns(evidence: Evidence): void {
  const { history } = evidence;
  const started = new Set<string>();
  for (const run of history.runs) {
    const ref = refOf(run.job);
    if (started.has(ref)) history.violate("each token starts once", ref);
    started.add(ref);
    const claim = history.claims.get(ref);
    if (claim?.process !== run.process)
      history.violate("only its claimer starts a job", `${ref} on ${run.process.name}`);
    if (run.startedOn < run.job.runAt.getTime())
      history.violate("never early", `${ref} started before its time`);
    // A third until the next heartbeat, and the fifth before the end at which a holder stops.
    if (run.leaseLeftMs < evidence.leaseMs * (1 / 3 + 1 / 5))
      history.violate("a handler starts with time for a heartbeat", `${ref} had ${run.leaseLeftMs} ms left`);
    checkSignal(run, evidence);
    if (isFragile(run.job)) checkAlone(run, history);
  }
}

/** A holder that could not renew has told its handler before anybody else could have the job; and one that could, has not. */
function checkSignal(run: HandlerRun, { history, leaseMs }: Evidence): void {
  const claim = history.claims.get(refOf(run.job));
  if (claim === undefined) return;
  const { leaseUntil } = claim;
  const overdue = run.endedAt === null || run.endedAt > leaseUntil;
  const dead = history.faults.some(
    ({ process, kind, from }) => process === run.process && kind.startsWith("crash") && from <= leaseUntil,
  );
  const given = claim.endedAt !== null && claim.endedAt <= leaseUntil;
  const expired = leaseUntil < history.now;
  const asleep = history.faultOn(run.process, leaseUntil - leaseMs, leaseUntil, ["paused"]);
  if (
    expired &&
    overdue &&
    !dead &&
    !given &&
    !asleep &&
    (run.signalledAt === null || run.signalledAt > leaseUntil)
  ) {
    history.violate(
      "a holder that cannot renew stops before expiry",
      `${refOf(run.job)} on ${run.process.name}`,
    );
  }
  if (
    run.signal === "lease-lost" &&
    run.signalledAt !== null &&
    !history.faultOn(run.process, run.startedAt - leaseMs, run.signalledAt)
  ) {
    history.violate("no lease is lost without a fault", `${refOf(run.job)} on ${run.process.name}`);
  }
}

/** Until its outcome is recorded, which a timeout may do before its handler settles: from then on a crash is not laid at its door. */
function checkAlone(run: HandlerRun, history: History): void {
  const overAt = history.claims.get(refOf(run.job))?.endedAt ?? Number.POSITIVE_INFINITY;
  const end = (one: HandlerRun): number => one.endedAt ?? Number.POSITIVE_INFINITY;
  const neighbour = history.runs.find(
    (other) =>
      other !== run &&
      other.process === run.process &&
      other.startedAt < Math.min(end(run), overAt) &&
      end(other) > run.startedAt,
  );
  if (neighbour !== undefined)
    history.violate("a fragile job runs alone", `${refOf(run.job)} beside ${refOf(neighbour.job)}`);
}

/** Between two dispatches of a job there is a reason. */
function checkDispatches(job: StoredJob, { history }: Evidence): void {
  const runs = history.runsOf(job.id);
  for (const [index, run] of runs.entries()) {
    const earlier = runs[index - 1];
    if (earlier === undefined) continue;
    if (run.job.token <= earlier.job.token)
      history.violate("tokens rise", `${refOf(run.job)} after ${refOf(earlier.job)}`);
    if (run.job.redrives > earlier.job.redrives) continue;
    if (run.job.delivery === "at-most-once") {
      history.violate("at-most-once is dispatched once", `${refOf(run.job)} after ${refOf(earlier.job)}`);
    }
    checkRollback(earlier, run, history);
    if (hasFailed(earlier) || earlier.end === "snoozed" || earlier.end === "interrupted") continue;
    if (!history.faultOn(earlier.process, earlier.startedAt, run.startedAt)) {
      history.violate(
        "no second run without a fault",
        `${refOf(run.job)} after ${refOf(earlier.job)}, which ${earlier.end ?? "has no end"}`,
      );
    }
  }
}

/** A store failure is nobody's. Claims between the two that were not started may each have ended in a crash. */
function checkRollback(earlier: HandlerRun, run: HandlerRun, history: History): void {
  if (earlier.end !== "store-failed" || history.claims.get(refOf(earlier.job))?.endedBy !== "holder") return;
  const attempts = run.job.attempt - earlier.job.attempt;
  const between = run.job.token - earlier.job.token - 1;
  if (attempts > between)
    history.violate("a rollback costs no attempt", `${refOf(run.job)} is attempt ${run.job.attempt}`);
}

/**
 * A handler that comes back after its timeout has failed, whatever it says. In a process that slept over both, the lost lease may tell it to
 * stop first; a timeout is half a lease here, so it is over by then.
 */
function hasFailed(run: HandlerRun): boolean {
  const outlasted = run.job.name === "timed" && run.signal === "lease-lost";
  return run.end === "threw" || run.end === "gave-up" || run.signal === "timeout" || outlasted;
}

/** Each end has its evidence. */
function checkEnd(job: StoredJob, evidence: Evidence): void {
  const problem = problemWithEnd(job, evidence);
  if (problem !== null)
    evidence.history.violate(
      "every end has its reason",
      `${job.id} is ${job.state} (${job.reason}): ${problem}`,
    );
  const cancels = cancelsOf(job.id, evidence.history) ?? [];
  if (cancels.includes("cancelled") && job.state !== "cancelled") {
    evidence.history.violate("an acknowledged cancel holds", `${job.id} is ${job.state}`);
  }
  if (cancels.includes("requested") && job.state !== "cancelled" && job.state !== "succeeded") {
    evidence.history.violate("a requested cancel holds against all but success", `${job.id} is ${job.state}`);
  }
}

/** The outcomes of cancels of a job, by its own id or by one that it stands for; null when nobody asked for any. */
function cancelsOf(id: string, { asked }: History): string[] | null {
  const names = [
    id,
    ...[...asked.acknowledged].filter(([, stands]) => stands === id).map(([alias]) => alias),
  ];
  const asks = names.flatMap((name) => asked.cancelled.get(name) ?? []);
  return names.some((name) => asked.cancelled.has(name)) ? asks : null;
}

function problemWithEnd(job: StoredJob, { history, jobs }: Evidence): string | null {
  const runs = history.runsOf(job.id).filter((run) => run.job.redrives === job.redrives);
  const last = runs.find((run) => run.job.token === job.token);
  switch (job.state) {
    case "succeeded":
      // With an effect the commit is the evidence, and it is counted elsewhere.
      if (job.delivery === "effectively-once") return last === undefined ? "it never ran" : null;
      return last?.end === "returned" ? null : "its last run did not return";
    case "dead":
      return problemWithDeath(job, runs, last);
    case "lost": {
      const claim = history.claims.get(refOf(job));
      if (job.delivery !== "at-most-once" || claim === undefined)
        return "only a claimed at-most-once job can be lost";
      return history.faultOn(claim.process, claim.at, claim.endedAt ?? claim.at)
        ? null
        : "nothing went wrong with its holder";
    }
    case "cancelled": {
      const orphan = [...jobs.keys()].some((id) => job.reason?.startsWith(`its parent ${id} is `));
      if (orphan || history.asked.replaced.has(job.id) || cancelsOf(job.id, history) !== null) return null;
      return job.reason === "expired" && job.attempt === 0 && job.expireAt !== null
        ? null
        : "nobody asked for it";
    }
    default:
      return "it has not ended";
  }
}

function problemWithDeath(
  job: StoredJob,
  runs: readonly HandlerRun[],
  last: HandlerRun | undefined,
): string | null {
  const reason = job.reason ?? "";
  if (reason.startsWith("poison")) {
    return job.crashes === job.maxCrashes && job.delivery !== "at-most-once"
      ? null
      : `${job.crashes} crashes are no poison`;
  }
  if (reason === "unrecoverable") return last?.end === "gave-up" ? null : "its last run did not give up";
  if (reason.startsWith("attempts used up")) {
    const failures = runs.filter(hasFailed).length;
    return failures >= attempts ? null : `only ${failures} runs failed`;
  }
  const failed = last !== undefined && (last.end !== "returned" || last.signal === "timeout");
  return last?.job.delivery === "at-most-once" && failed ? null : "no run of it failed";
}

/** What is enqueued in a transaction exists if, and only if, that committed. */
function checkSpawned(job: StoredJob, { history, jobs }: Evidence): void {
  const { spawns } = JSON.parse(job.input) as Script;
  const expected = spawns && job.delivery === "effectively-once" && job.state === "succeeded";
  if (jobs.has(spawnedId(job.id)) !== expected) {
    history.violate("a job enqueued with an effect shares its fate", `${job.id} is ${job.state}`);
  }
}

function checkEffects(job: StoredJob, { history, effects }: Evidence): void {
  const own = effects.filter((key) => key.startsWith(`${job.id} `));
  const expected = job.delivery === "effectively-once" && job.state === "succeeded" ? 1 : 0;
  if (own.length !== expected) {
    history.violate(
      "one committed effect for a success, none otherwise",
      `${job.id} is ${job.state} with ${own.length}`,
    );
  }
}
