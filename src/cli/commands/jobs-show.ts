import type { Command } from "commander";
import { explain } from "../../app/explain.ts";
import { EscapementError } from "../../errors.ts";
import type { Job } from "../../job.ts";
import { type AppFlags, appCommand, here, withOperations } from "../app.ts";
import { print } from "../output.ts";

const longestStack = 12;

export function showCommand(): Command {
  return appCommand("show", "everything about one job: its history, its error, its input and result")
    .argument("<id>", "the id of a job")
    .action(async (id: string, flags: AppFlags) => {
      const { story, lines } = await withOperations(flags, async (operations, app) => {
        const found = await operations.job(id);
        if (found === null) throw new EscapementError("not-found", `there is no job ${JSON.stringify(id)}`);
        return { story: found, lines: await explain(app, found.job.id) };
      });
      print(flags.json, story, () => [
        ...lines.map((line) => here(line, flags)),
        ...errorLines(story.job),
        ...valueLines("input", story.job.input),
        ...(story.job.result === null ? [] : valueLines("result", story.job.result)),
        ...(story.job.progress === null ? [] : valueLines("progress", story.job.progress)),
        ...(story.job.tags.length === 0 ? [] : ["", `tags: ${story.job.tags.join(", ")}`]),
      ]);
    });
}

/** A stack is as its job made it: the bar keeps its lines from passing for ours. */
function errorLines({ error }: Job): string[] {
  if (error === null) return [];
  const stack = (error.stack ?? `${error.name}: ${error.message}`).split("\n");
  const cut = stack.length > longestStack ? ["  | …"] : [];
  return ["", "error:", ...stack.slice(0, longestStack).map((line) => `  | ${line}`), ...cut];
}

function valueLines(what: string, value: unknown): string[] {
  const json = JSON.stringify(value, null, 2) ?? "null";
  return ["", `${what}:`, ...json.split("\n").map((line) => `  ${line}`)];
}
