import type { Escapement } from "../app/escapement.ts";
import { recordError } from "../errors.ts";
import type { AppEventName, AppEvents } from "../events.ts";
import type { JobFacts } from "../job.ts";
import { printable, printableJson } from "../runtime/printable.ts";

type Described = { readonly [E in AppEventName]?: (event: AppEvents[E]) => string };

/** What a person wants to know of each event; the others are only for programs. */
const described: Described = {
  started: ({ job }) => `${of(job)} attempt ${job.attempt}`,
  succeeded: ({ job, ms }) => `${of(job)} in ${Math.round(ms)} ms`,
  failed: ({ job, error, retryInMs }) => `${of(job)} ${error.message}; retry in ${Math.round(retryInMs)} ms`,
  snoozed: ({ job, delayMs }) => `${of(job)} for ${delayMs} ms`,
  released: ({ job }) => `${of(job)} not started, given back`,
  dead: ({ job, reason, error }) => `${of(job)} ${reason}${error === null ? "" : `: ${error.message}`}`,
  lost: ({ job, reason }) => `${of(job)} ${reason}`,
  cancelled: ({ job, reason }) => `${of(job)}${reason === null ? "" : ` ${reason}`}`,
  stale: ({ job }) => `${of(job)} the claim was no longer this node's; nothing was written`,
  leaseLost: ({ job }) => `${of(job)} its signal has fired`,
  reaped: (job) => `${of(job)} ${job.reason ?? ""}, now ${job.state}`,
  error: ({ error, during }) => `${during}: ${error instanceof Error ? error.message : String(error)}`,
};

export interface ShowOptions {
  readonly json: boolean;
  /** Results are often personal, like inputs, and these lines often go to logs. */
  readonly withInputs: boolean;
}

/** Prints what happens in an app, a line each: for a person, or as JSON for a program. */
export function showEvents(app: Escapement, options: ShowOptions): void {
  for (const name of Object.keys(described) as AppEventName[]) show(app, name, options);
}

function show<E extends AppEventName>(app: Escapement, name: E, { json, withInputs }: ShowOptions): void {
  const describe = described[name] as ((event: AppEvents[E]) => string) | undefined;
  const hidden = (key: string, value: unknown): unknown =>
    key === "result" && !withInputs ? undefined : withErrors(value);
  app.on(name, (event) => {
    const at = new Date().toISOString();
    if (json) console.log(printableJson({ at, event: name, ...event }, hidden));
    else console.log(printable(`${at} ${name.padEnd(10)} ${describe?.(event) ?? ""}`.trimEnd()));
  });
}

/** JSON.stringify shows nothing of an Error; its stack is for the log. */
function withErrors(value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const { name, message, code } = recordError(value);
  return { name, message, code };
}

function of(job: Pick<JobFacts, "id" | "name">): string {
  return `${job.name} ${job.id}`;
}
