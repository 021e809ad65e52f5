import type { FaultWindow, History, LogLine } from "./history.ts";

/** One dispatch of a job, as its handler wrote it down. */
export interface Attempt {
  readonly job: string;
  readonly token: number;
  readonly node: string;
  /** When its claim was sent: from then on a fault can cost it its lease. The start, if that is not known. */
  readonly claimedAtMs: number;
  readonly startAtMs: number;
  /** Null: nobody knows, since it was killed. */
  readonly endAtMs: number | null;
  readonly how: LogLine["how"];
  /** The store accepted its success, as its node was told. */
  readonly done: boolean;
  readonly schedule: string | null;
  readonly fireAt: number | null;
}

/** All dispatches by job, in order of their start. */
export function attemptsOf({ lines }: History): Map<string, Attempt[]> {
  const ends = new Map<string, LogLine>();
  const done = new Set<string>();
  for (const line of lines) {
    const ref = `${line.job} ${line.token} ${line.node}`;
    if (line.what === "end") ends.set(ref, line);
    if (line.what === "done") done.add(ref);
  }
  const attempts = lines
    .filter(({ what }) => what === "start")
    .map(({ job, token, node, atMs, claimedAtMs, schedule, fireAt }): Attempt => {
      const ref = `${job} ${token} ${node}`;
      const end = ends.get(ref);
      const [endAtMs, how] = [end?.atMs ?? null, end?.how ?? null];
      return {
        job,
        token,
        node,
        claimedAtMs: claimedAtMs ?? atMs,
        startAtMs: atMs,
        endAtMs,
        how,
        done: done.has(ref),
        schedule,
        fireAt,
      };
    })
    .toSorted((a, b) => a.startAtMs - b.startAtMs);
  return Map.groupBy(attempts, ({ job }) => job);
}

/** The faults that can have cost a process its claims. A clock that is wrong must cost nothing, so it excuses nothing. */
export function faultOn(
  faults: readonly FaultWindow[],
  node: string | null,
  fromMs: number,
  untilMs: number,
): FaultWindow | undefined {
  return faults.find(
    (fault) =>
      fault.kind !== "clock" &&
      (node === null || fault.node === null || fault.node === node) &&
      fault.fromMs <= untilMs &&
      fault.untilMs >= fromMs,
  );
}

/** Whether an answer of the store can have been lost on its way in this time. */
export function answerLost(faults: readonly FaultWindow[], fromMs: number, untilMs: number): boolean {
  return faults.some(
    (fault) =>
      (fault.kind === "network" || fault.kind === "both" || fault.kind === "restart") &&
      fault.fromMs <= untilMs &&
      fault.untilMs >= fromMs,
  );
}
