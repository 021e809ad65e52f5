import { Command, InvalidArgumentError } from "commander";
import type { QueueOptions } from "../../client/client.ts";
import { type Duration, formatDuration, parseDuration } from "../../duration.ts";
import type { QueueView } from "../../operations/operations.ts";
import type { QueueConfig } from "../../store.ts";
import { type ActFlags, actOf, withAct } from "../acting.ts";
import { type AppFlags, appCommand, withOperations } from "../app.ts";
import { type Cell, type Line, Painted, print, printList, table } from "../output.ts";
import { short } from "../times.ts";
import { UsageError } from "../usage-error.ts";

interface LimitFlags extends AppFlags, ActFlags {
  readonly concurrency?: number | null;
  readonly rate?: QueueOptions["rate"];
}

export function queuesCommand(): Command {
  const command = new Command("queues").description("look at queues and change them");
  command.addCommand(
    appCommand("ls", "what each has to do, and what holds it back").action(async (flags: AppFlags) => {
      const queues = await withOperations(flags, (operations) => operations.queues());
      printList(flags.json, queues, () => (queues.length === 0 ? ["no queues"] : queueTable(queues)));
    }),
  );
  command.addCommand(
    withAct(appCommand("pause", "start nothing more of it, on any node; what runs goes on"))
      .argument("<queue>")
      .action(async (queue: string, flags: AppFlags & ActFlags) => {
        const config = await withOperations(flags, (operations) =>
          operations.pauseQueue(queue, actOf(flags)),
        );
        print(flags.json, config, () => [describeConfig(config)]);
      }),
  );
  command.addCommand(
    withAct(appCommand("resume", "go on"))
      .argument("<queue>")
      .action(async (queue: string, flags: AppFlags & ActFlags) => {
        const config = await withOperations(flags, (operations) =>
          operations.resumeQueue(queue, actOf(flags)),
        );
        print(flags.json, config, () => [describeConfig(config)]);
      }),
  );
  command.addCommand(limitCommand());
  return command;
}

function limitCommand(): Command {
  return withAct(appCommand("limit", "limit it over all nodes, from the next claim on"))
    .argument("<queue>")
    .option("--concurrency <n>", "how many of its jobs run at once; none takes the limit away", concurrency)
    .option(
      "--rate <n/duration>",
      "how many start in a window, such as 100/1s; none takes the limit away",
      rate,
    )
    .action(async (queue: string, flags: LimitFlags) => {
      const limits = {
        ...(flags.concurrency === undefined ? {} : { concurrency: flags.concurrency }),
        ...(flags.rate === undefined ? {} : { rate: flags.rate }),
      };
      if (Object.keys(limits).length === 0)
        throw new UsageError("expected a limit: --concurrency 5, --rate 100/1s, or none to take it away");
      const act = actOf(flags);
      const config = await withOperations(flags, (operations) => operations.limitQueue(queue, limits, act));
      print(flags.json, config, () => [describeConfig(config)]);
    });
}

function concurrency(text: string): number | null {
  if (text === "none") return null;
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError("expected a whole number from 1, or none");
  return Number(text);
}

function rate(text: string): QueueOptions["rate"] {
  if (text === "none") return null;
  const [, limit, per] = /^(\d+)\/(.+)$/.exec(text) ?? [];
  try {
    if (limit !== undefined && parseDuration(per, "it") > 0)
      return { limit: Number(limit), per: per as Duration };
  } catch {
    // Told below.
  }
  throw new InvalidArgumentError("expected how many in which time, such as 100/1s, or none");
}

export function queueTable(queues: readonly QueueView[]): Line[] {
  return table(
    ["queue", "due", "oldest", "later", "active", "blocked", ""],
    queues.map((queue) => [
      queue.queue,
      queue.due,
      queue.oldestDueMs === null ? "" : short(queue.oldestDueMs),
      queue.later,
      queue.active,
      queue.blocked,
      stateOf(queue),
    ]),
  );
}

function stateOf(queue: QueueView): Cell {
  const limits = limitsOf(queue).join(", ");
  const more = queue.isExact ? "" : `${limits === "" ? "" : ", "}more may be due`;
  if (!queue.paused) return `${limits}${more}`;
  return new Painted(limits === "" ? "paused" : `paused, ${limits}`, "yellow");
}

function limitsOf({ concurrency: most, rate: starts }: Pick<QueueConfig, "concurrency" | "rate">): string[] {
  return [
    ...(most === null ? [] : [`at most ${most} at once`]),
    ...(starts === null ? [] : [`at most ${starts.limit} per ${formatDuration(starts.perMs)}`]),
  ];
}

function describeConfig(config: QueueConfig): string {
  const limits = limitsOf(config);
  const state = config.paused ? "paused" : "running";
  return `${config.queue}: ${[state, ...(limits.length === 0 ? ["no limits"] : limits)].join(", ")}`;
}
