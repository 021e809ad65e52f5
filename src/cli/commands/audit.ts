import type { Command } from "commander";
import type { AuditLogEntry } from "../../operations/audit-log.ts";
import { shellWord } from "../../runtime/shell-word.ts";
import { type AppFlags, appCommand, withOperations } from "../app.ts";
import { several } from "../filter-flags.ts";
import { type Line, Painted, printList, remark, table } from "../output.ts";
import { instantOrAgo } from "../times.ts";
import { wholeNumber } from "./cron.ts";

interface AuditFlags extends AppFlags {
  readonly actor?: readonly string[];
  readonly action?: readonly string[];
  readonly target?: readonly string[];
  readonly since?: Date;
  readonly until?: Date;
  readonly limit: number;
  readonly cursor?: string;
}

export function auditCommand(): Command {
  return appCommand("audit", "who did what, the newest first")
    .option("--actor <who>", "by them; repeatable", several)
    .option("--action <what>", "such as redrive or pause-queue; repeatable", several)
    .option("--target <what>", "such as job:42 or queue:mail; repeatable", several)
    .option("--since <time>", "since then, such as 90m or 2026-11-15T03:00Z", instantOrAgo)
    .option("--until <time>", "before then", instantOrAgo)
    .option("--limit <n>", "how many at most", wholeNumber, 50)
    .option("--cursor <where>", "continue where another page ended")
    .action(async (flags: AuditFlags) => {
      const { actor, action, target, since, until, limit, cursor = null } = flags;
      const filter = {
        ...(actor === undefined ? {} : { actors: actor }),
        ...(action === undefined ? {} : { actions: action }),
        ...(target === undefined ? {} : { targets: target }),
        ...(since === undefined ? {} : { after: since }),
        ...(until === undefined ? {} : { before: until }),
      };
      const page = await withOperations(flags, (operations) => operations.audit(filter, { limit, cursor }));
      printList(flags.json, page.entries, () =>
        page.entries.length === 0 ? ["nothing was done"] : entryTable(page.entries),
      );
      if (page.cursor === null) return;
      if (flags.json === true) process.stderr.write(`${JSON.stringify({ cursor: page.cursor })}\n`);
      else remark(false, `there are more: continue with --cursor ${shellWord(page.cursor)}`);
    });
}

function entryTable(entries: readonly AuditLogEntry[]): Line[] {
  return table(
    ["time", "who", "did", "to", "outcome", "reason"],
    entries.map(({ at, actor, action, target, outcome, reason }) => [
      `${at.toISOString().slice(0, 19)}Z`,
      actor,
      action,
      target,
      outcome === null ? new Painted("not known", "yellow") : outcomeText(outcome),
      reason ?? "",
    ]),
    { whole: ["time", "who"], importance: ["time", "did", "to", "who", "outcome", "reason"] },
  );
}

function outcomeText(outcome: unknown): string {
  if (typeof outcome !== "object" || outcome === null) return String(outcome);
  return Object.entries(outcome)
    .filter(([name, value]) => value !== null && value !== 0 && !(name === "state" && value === "done"))
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(", ");
}
