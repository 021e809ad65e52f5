import type { Events } from "../events.ts";
import type { Logger } from "../log.ts";

interface Facts {
  readonly job: string;
  readonly name: string;
  readonly attempt?: number;
}

/**
 * Logs each job that this process sees die or get lost, in one line: in its own worker, or through its reaper. An attempt that fails and is
 * retried is not logged.
 */
export function warnOfEnds(events: Events, log: Logger): void {
  const warn = (facts: Facts, end: string, why: string | null): void => {
    const [line = ""] = (why ?? "").split("\n", 1);
    log.warn(
      facts,
      `job ${JSON.stringify(facts.job)} (${facts.name}) is ${end}${line === "" ? "" : `: ${line}`}`,
    );
  };
  events.count("dead", ({ job, reason, error }) => {
    const { id, name, attempt } = job;
    const why = [reason, error === null ? "" : `${error.name}: ${error.message}`].filter((one) => one !== "");
    warn({ job: id, name, attempt }, `dead after attempt ${attempt}`, why.join(", "));
  });
  events.count("lost", ({ job: { id, name, attempt }, reason }) => {
    warn({ job: id, name, attempt }, `lost in attempt ${attempt}`, reason);
  });
  events.count("reaped", ({ id, name, state, reason }) => {
    if (state === "dead" || state === "lost") warn({ job: id, name }, state, reason);
  });
}
