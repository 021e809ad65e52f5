import type { Command } from "commander";
import type { Escapement } from "../../app/escapement.ts";
import { type AppFlags, appCommand, withApp } from "../app.ts";
import { diagnose, type Finding } from "../diagnose.ts";
import { print } from "../output.ts";

const marks: Readonly<Record<Finding["level"], string>> = { ok: "ok  ", warning: "WARN", problem: "FAIL" };

export function doctorCommand(): Command {
  return appCommand(
    "doctor",
    "look for what weakens a guarantee or keeps jobs from running, and say what to do",
  ).action(async (flags: AppFlags) => {
    const findings = await withApp(flags, examine);
    print(flags.json, findings, () =>
      findings.map(
        ({ level, what, advice }) =>
          `${marks[level]}  ${what}${advice === null ? "" : `\n      → ${advice}`}`,
      ),
    );
    if (findings.some(({ level }) => level === "problem")) process.exitCode = 1;
  });
}

async function examine(app: Escapement): Promise<Finding[]> {
  const askedAt = Date.now();
  const health = await app.health();
  const answeredAt = Date.now();
  const [counts, nodes, queues] = await Promise.all([
    app.countBy(["name", "state"]),
    app.nodes(),
    app.queues(),
  ]);
  return diagnose({
    health,
    // The store's clock was read somewhere between the two.
    clockOffsetMs: { least: health.now.getTime() - answeredAt, most: health.now.getTime() - askedAt },
    definitions: app.definitions,
    settings: app.settings,
    counts,
    nodes,
    queues,
  });
}
