import { type Command, Option } from "commander";
import type { Escapement } from "../../app/escapement.ts";
import { type AnyDefinition, defineJob } from "../../definition.ts";
import type { EnqueueOptions } from "../../enqueue.ts";
import { EscapementError } from "../../errors.ts";
import { type Delivery, deliveries } from "../../job.ts";
import { Operations } from "../../operations/operations.ts";
import { type ActFlags, actOf, withAct } from "../acting.ts";
import { type AppFlags, appCommand, withApp } from "../app.ts";
import { several } from "../filter-flags.ts";
import { print } from "../output.ts";
import { readInput } from "../read-input.ts";
import { duration, instant } from "../times.ts";
import { wholeInteger } from "./jobs-edit.ts";

interface EnqueueFlags extends AppFlags, ActFlags {
  readonly input?: string;
  readonly id?: string;
  readonly delay?: number;
  readonly at?: Date;
  readonly priority?: number;
  readonly tag?: readonly string[];
  readonly queue?: string;
  readonly delivery?: Delivery;
}

export function enqueueCommand(): Command {
  return withAct(appCommand("enqueue", "enqueue a job"))
    .argument("<name>", "the name of the job, as the config file defines it")
    .option("--input <json>", "its input: JSON, @file, or - for standard input")
    .option("--id <id>", "its id; an existing id enqueues nothing")
    .option("--delay <duration>", "due this long from now", duration)
    .option("--at <time>", "due then", instant)
    .option("--priority <n>", "higher runs first", wholeInteger)
    .option("--tag <tag>", "a tag; repeatable", several)
    .addOption(
      new Option("--delivery <which>", "its guarantee, for a job that no config file here defines").choices([
        ...deliveries,
      ]),
    )
    .option("--queue <name>", "its queue, for a job that no config file here defines")
    .action(async (name: string, flags: EnqueueFlags) => {
      const input = flags.input === undefined ? undefined : await readInput(flags.input);
      const { id, delay, at, priority, tag } = flags;
      const options: EnqueueOptions = {
        ...(id === undefined ? {} : { id }),
        ...(delay === undefined ? {} : { delay }),
        ...(at === undefined ? {} : { runAt: at }),
        ...(priority === undefined ? {} : { priority }),
        ...(tag === undefined ? {} : { tags: tag }),
      };
      const receipt = await withApp(flags, "ask", (app) =>
        new Operations(app).enqueue(definitionOf(app, name, flags), input, options, actOf(flags)),
      );
      print(flags.json, receipt, () => [
        receipt.outcome === "added" ? receipt.id : `${receipt.id} (${receipt.outcome}: no new job)`,
      ]);
    });
}

/** Without its definition a job has no schema, keys or limits, so at least its guarantee must be given. */
function definitionOf(app: Escapement, name: string, { delivery, queue }: EnqueueFlags): AnyDefinition {
  const known = app.definitions.find((definition) => definition.name === name);
  if (known !== undefined && delivery === undefined && queue === undefined) return known;
  if (known !== undefined) {
    throw new EscapementError(
      "invalid-option",
      `expected no --delivery and no --queue, since the config file defines ${JSON.stringify(name)}`,
    );
  }
  if (delivery !== undefined) return defineJob({ name, delivery, ...(queue === undefined ? {} : { queue }) });
  const names = app.definitions.map((definition) => definition.name).join(", ");
  throw new EscapementError(
    "unknown-job",
    `no config file here defines the job ${JSON.stringify(name)}${names === "" ? "" : ` (it defines ${names})`}; name one with --config, or pass --delivery to enqueue it without its definition`,
  );
}
