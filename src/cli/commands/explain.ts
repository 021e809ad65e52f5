import type { Command } from "commander";
import { type AppFlags, appCommand, here, withApp } from "../app.ts";
import { print } from "../output.ts";

export function explainCommand(): Command {
  return appCommand("explain", "explain why a job or an occurrence ran, or did not")
    .argument("<target>", "the id of a job, or schedule@time")
    .action(async (target: string, flags: AppFlags) => {
      const { lines, diagnosis } = await withApp(flags, "ask", async (app) => ({
        lines: await app.explain(target),
        diagnosis: await app.diagnose(target),
      }));
      print(flags.json, { lines, diagnosis }, () => lines.map((line) => here(line, flags)));
    });
}
