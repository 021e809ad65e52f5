import { EscapementError } from "../errors.ts";
import { type HistoryParams, type HistoryStep, historySteps, stepAt, stepMs } from "../history.ts";
import { checkName } from "../names.ts";
import { checkDate, checkInteger, checkKnown, checkOneOf } from "../options.ts";

export interface HistoryOptions {
  /** Minutes are kept for a day, hours for 30 days. @default "minute" */
  readonly step?: HistoryStep;
  /** @default an hour ago for minutes, a day ago for hours */
  readonly since?: Date;
  /** @default now */
  readonly until?: Date;
  /** Only this queue. */
  readonly queue?: string;
  /** Only jobs of this name. */
  readonly name?: string;
  /** One point for each queue, or each name, of a step. @default one for the step */
  readonly by?: "queue" | "name";
  /** How many points at most. @default 10_000 */
  readonly limit?: number;
}

const spanMs = { minute: stepMs.hour, hour: 24 * stepMs.hour } as const;
const groups = ["queue", "name"] as const;
export const maxHistoryPoints = 10_000;

/** The question to the store. Times are rounded so the steps that contain them are part of the answer. */
export function historyParams(options: HistoryOptions, nowMs: number): HistoryParams {
  checkKnown(options, ["step", "since", "until", "queue", "name", "by", "limit"], "history");
  const step = checkOneOf(options.step ?? "minute", historySteps, "step");
  // Where the store's clock is ahead of this one, "now" must not leave out its latest step.
  const until =
    options.until === undefined ? new Date(nowMs + stepMs[step]) : checkDate(options.until, "until");
  const since =
    options.since === undefined ? new Date(nowMs - spanMs[step]) : checkDate(options.since, "since");
  if (since > until)
    throw new EscapementError(
      "invalid-option",
      `expected since to be before until (${until.toISOString()}), got ${since.toISOString()}`,
    );
  return {
    step,
    since: new Date(stepAt(step, since.getTime())),
    until,
    ...(options.queue === undefined ? {} : { queue: checkName(options.queue, "the name of a queue") }),
    ...(options.name === undefined ? {} : { name: checkName(options.name, "the name of a job") }),
    by: options.by === undefined ? null : checkOneOf(options.by, groups, "by"),
    limit: checkInteger(options.limit ?? maxHistoryPoints, 1, maxHistoryPoints, "limit"),
  };
}
