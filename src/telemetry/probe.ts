/** One thing that was looked at. */
export interface ProbeCheck {
  readonly name: "store" | "loop" | "app" | "claims" | "relay";
  readonly ok: boolean;
  /** For a person: how it is, or why not. */
  readonly detail: string;
}

/** The answer to an orchestrator that asks how a process is. */
export interface Probe {
  /** Whether every check is. */
  readonly ok: boolean;
  readonly checks: readonly ProbeCheck[];
}

/** Why an app that only asks and enqueues is not ready. */
export const notStarted = "it is not started";

export function probeOf(checks: readonly ProbeCheck[]): Probe {
  return { ok: checks.every(({ ok }) => ok), checks };
}
