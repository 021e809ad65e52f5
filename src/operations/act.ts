import type { Client } from "../client/client.ts";
import { describe, EscapementError, recordError } from "../errors.ts";
import { checkName } from "../names.ts";
import { checkKnown } from "../options.ts";

/** Who does something, and why. Both are kept, in the audit log and in the trail of each job. */
export interface Act {
  readonly actor: string;
  readonly reason?: string | null;
}

const longestReason = 1_000;
const longestTarget = 2_000;

export function checkAct(act: Act): Act {
  checkKnown(act, ["actor", "reason"], "an act");
  checkName(act.actor, "actor");
  const { reason = null } = act;
  if (reason !== null && !(typeof reason === "string" && reason.length <= longestReason)) {
    throw new EscapementError(
      "invalid-option",
      `expected reason to be a string of at most ${longestReason} characters, got ${describe(reason)}`,
    );
  }
  return act;
}

/** How an act is written in a trail. */
export function textOf({ actor, reason = null }: Act, verb = ""): string {
  const by = `${verb === "" ? "" : `${verb} `}by ${actor}`;
  return reason === null || reason === "" ? by : `${by}: ${reason}`;
}

/** An act as it goes into the audit log. */
export interface Recorded<T> {
  /** Such as `cancel`. */
  readonly action: string;
  /** Such as `job:42`. */
  readonly target: string;
  run(): Promise<T>;
  /** What came of it, for the log. */
  outcome(value: T): unknown;
}

/**
 * Writes down what is about to be done, does it, and adds what came of it. A process that is killed in between leaves an entry without an
 * outcome, which says just that: this was begun, and how far it came is unknown.
 */
export async function recorded<T>(client: Client, act: Act, entry: Recorded<T>): Promise<T> {
  checkAct(act);
  const { actor, reason = null } = act;
  const { action } = entry;
  const target = entry.target.slice(0, longestTarget);
  const intent = { id: client.newId(), actor, action, target, reason, outcome: null };
  await client.record(intent);
  const end = async (outcome: unknown): Promise<void> => {
    // What was done is done: an outcome that cannot be written must not look like a failure of it.
    await client.record({ ...intent, outcome: JSON.stringify(outcome) }).catch(() => {});
  };
  try {
    const value = await entry.run();
    await end(entry.outcome(value));
    return value;
  } catch (error) {
    const { name, message, code } = recordError(error);
    await end({ error: message, code: code ?? name });
    throw error;
  }
}
