import { type Command, InvalidArgumentError, Option } from "commander";
import { deliveries, jobStates } from "../job.ts";
import { instantOrAgo } from "./times.ts";

export function withFilter(command: Command): Command {
  return command
    .addOption(anyOf("--state <states>", "in any of these states, such as dead,lost", jobStates))
    .option("--name <name>", "of this job; repeatable", several)
    .option("--queue <queue>", "in this queue; repeatable", several)
    .option("--tag <tag>", "with this tag; repeatable: all must match", several)
    .addOption(anyOf("--delivery <which>", "with any of these guarantees", deliveries))
    .option("--schedule <key>", "made by this schedule")
    .option(
      "--since <time>",
      "ended since then if --state asks only for ended jobs, otherwise enqueued since then; such as 90m or 2026-11-15T03:00Z",
      instantOrAgo,
    )
    .option("--until <time>", "the same, before then", instantOrAgo)
    .option("--error <string>", "with this in the error or the reason, ignoring case")
    .option("--text <string>", "with this in the input, a tag, the error or the reason")
    .option("--fingerprint <id>", "that failed for this cause; dead and lost show the fingerprints");
}

export function several(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** The help and the completion show the choices; the parser takes several of them. */
function anyOf(flags: string, description: string, known: readonly string[]): Option {
  return new Option(flags, description).choices(known).argParser(oneOf(known));
}

/** `dead,lost`, or the option repeated. */
function oneOf<T extends string>(known: readonly T[]) {
  return (value: string, before: readonly T[] = []): readonly T[] => [
    ...before,
    ...value.split(",").map((word) => {
      const found = known.find((one) => one === word.trim());
      if (found === undefined) throw new InvalidArgumentError(`expected any of ${known.join(", ")}`);
      return found;
    }),
  ];
}
