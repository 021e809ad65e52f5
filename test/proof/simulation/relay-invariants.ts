import { isTerminal } from "../../../src/state.ts";
import type { StoredJob } from "../../../src/store/jobs.ts";
import { unacceptable } from "./relay-broker.ts";
import type { RelayHistory } from "./relay-history.ts";

/** What must hold when everything has come to its end. */
export function checkRelay(
  history: RelayHistory,
  jobs: readonly StoredJob[],
  acknowledged: ReadonlySet<string>,
): void {
  const known = new Set(jobs.map(({ id }) => id));
  for (const id of acknowledged) if (!known.has(id)) history.violate("an acknowledged job exists", id);
  for (const job of jobs) checkJob(history, job);
}

function checkJob(history: RelayHistory, job: StoredJob): void {
  const arrivals = history.of(job.id);
  const accepted = arrivals.filter(({ isAccepted }) => isAccepted);
  const is = `${job.id} (${job.delivery}) is ${job.state}${job.reason === null ? "" : `: ${job.reason}`}`;
  if (!isTerminal(job.state)) history.violate("every job ends", is);
  if (job.state === "succeeded" && accepted.length === 0) {
    history.violate("a task counts as fired only when the broker has it", is);
  }
  if (job.state === "succeeded" && job.attempt !== 1) {
    history.violate("a rollback costs no attempt", `${is} after ${job.attempt} attempts`);
  }
  if (job.delivery === "at-most-once") {
    const copies = Map.groupBy(arrivals, ({ redrives }) => redrives);
    for (const same of copies.values()) {
      if (same.length > 1) history.violate("at-most-once is published once", `${is}, ${same.length} times`);
    }
  } else if (job.state === "lost") {
    history.violate("only at-most-once is ever lost", is);
  }
  if (job.delivery !== "at-most-once" && job.state === "dead" && job.input !== unacceptable) {
    history.violate("only a refusal for good is dead", is);
  }
  const cancelledAt = history.cancelled.get(job.id);
  if (cancelledAt !== undefined && arrivals.some(({ at }) => at > cancelledAt)) {
    history.violate("what was cancelled before it was named does not fire", is);
  }
  if (history.faults === 0 && accepted.length > 1) history.violate("no second copy without a fault", is);
}
