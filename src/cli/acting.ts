import { hostname, userInfo } from "node:os";
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import type { Act } from "../operations/act.ts";
import { UsageError } from "./usage-error.ts";

/** Who acts and why, and whether to ask. */
export interface ActFlags {
  readonly reason?: string;
  readonly actor?: string;
}

export interface ManyFlags extends ActFlags {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

export function withAct(command: Command): Command {
  return command
    .option("--reason <why>", "kept in the job's trail and in the audit log")
    .option("--actor <who>", "who acts (default: ESCAPEMENT_ACTOR, or user@host)");
}

export function withMany(command: Command): Command {
  return withAct(command)
    .option("--yes", "do not ask")
    .option("--dry-run", "change nothing, count what would be changed");
}

export function actOf({ actor, reason }: ActFlags): Act {
  return { actor: actor ?? defaultActor(), reason: reason ?? null };
}

const longestActor = 128;

function defaultActor(): string {
  const named = process.env["ESCAPEMENT_ACTOR"];
  const who = named === undefined || named === "" ? `${userName()}@${hostname()}` : named;
  return who.replaceAll(/\p{Cc}/gu, "").slice(0, longestActor);
}

/** A container may have a user without a name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.() ?? "unknown"}`;
  }
}

/** Asks on a terminal; elsewhere no one can answer, so `--yes` must have been given. */
export async function confirmed(question: string, { yes }: ManyFlags): Promise<boolean> {
  if (yes === true) return true;
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new UsageError(`${question} Pass --yes to do it, or --dry-run to count.`);
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  const interrupted = new AbortController();
  reader.once("SIGINT", () => interrupted.abort());
  try {
    const answer = await reader.question(`${question} [y/N] `, { signal: interrupted.signal });
    const isYes = /^y(es)?$/i.test(answer.trim());
    // What was asked for is not done.
    if (!isYes) process.exitCode = 1;
    return isYes;
  } catch {
    // Ctrl-C and Ctrl-D mean no.
    process.exitCode = interrupted.signal.aborted ? 130 : 1;
    process.stderr.write("\n");
    return false;
  } finally {
    reader.close();
  }
}
