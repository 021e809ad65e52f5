import type { Duration } from "../duration.ts";

export interface ReasonOptions {
  /** In plain words, kept in the job's trail. */
  readonly reason?: string;
}

export interface StopOptions {
  /** How long running handlers may continue before their signal fires. @default "30s" */
  readonly timeout?: Duration;
}
