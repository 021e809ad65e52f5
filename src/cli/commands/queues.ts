import { Command, InvalidArgumentError } from "commander";
import type { QueueOptions } from "../../client/client.ts";
import { type Duration, formatDuration, parseDuration } from "../../duration.ts";
import type { Operations } from "../../operations/operations.ts";
import type { QueueView } from "../../operations/queue-views.ts";
import type { QueueConfig } from "../../store/queues.ts";
import { type ActFlags, actOf, withAct } from "../acting.ts";
import { type AppFlags, appCommand, withOperations } from "../app.ts";
import { type Cell, type Line, Painted, print, printList, remark, table } from "../output.ts";
import { short } from "../times.ts";
import { UsageError } from "../usage-error.ts";

/** Not null: commander takes that for a parser that failed. */
type OrNone<T> = T | "none";

interface LimitFlags extends AppFlags, ActFlags {
  readonly concurrency?: OrNone<number>;
  readonly rate?: OrNone<NonNullable<QueueOptions["rate"]>>;
}

export function queuesCommand(): Command {
  const command = new Command("queues").description("inspect and change queues");
  command.addCommand(
    appCommand("ls", "their depth, and what holds them back").action(async (flags: AppFlags) => {
      const queues = await withOperations(flags, (operations) => operations.queues());
      printList(flags.json, queues, () =>
        queues.length === 0
          ? ["there is no queue: no jobs, no definitions, and no settings"]
          : queueTable(queues),
      );
    }),
  );
  command.addCommand(
    withAct(appCommand("pause", "pause it on all nodes; running jobs finish"))
      .argument("<queue>")
      .action((queue: string, flags: AppFlags & ActFlags) =>
        configure(queue, flags, (operations) => operations.pauseQueue(queue, actOf(flags))),
      ),
  );
  command.addCommand(
    withAct(appCommand("resume", "resume it"))
      .argument("<queue>")
      .action((queue: string, flags: AppFlags & ActFlags) =>
        configure(queue, flags, (operations) => operations.resumeQueue(queue, actOf(flags))),
      ),
  );
  command.addCommand(limitCommand());
  return command;
}

function limitCommand(): Command {
  return withAct(appCommand("limit", "limit it across all nodes, from the next claim on"))
    .argument("<queue>")
    .option("--concurrency <n>", "how many of its jobs run at once; none removes the limit", concurrency)
    .option("--rate <n/duration>", "how many start in a window, such as 100/1s; none removes the limit", rate)
    .action(async (queue: string, flags: LimitFlags) => {
      const limits = {
        ...(flags.concurrency === undefined ? {} : { concurrency: limitOf(flags.concurrency) }),
        ...(flags.rate === undefined ? {} : { rate: limitOf(flags.rate) }),
      };
      if (Object.keys(limits).length === 0)
        throw new UsageError("expected a limit: --concurrency 5, --rate 100/1s, or none to remove it");
      const act = actOf(flags);
      await configure(queue, flags, (operations) => operations.limitQueue(queue, limits, act));
    });
}

/** A queue may be paused before its first job; more often the name is misspelt. */
async function configure(
  queue: string,
  flags: AppFlags,
  change: (operations: Operations) => Promise<QueueConfig>,
): Promise<void> {
  const { config, isKnown } = await withOperations(flags, async (operations) => ({
    isKnown: await operations.isQueueKnown(queue),
    config: await change(operations),
  }));
  print(flags.json, config, () => [describeConfig(config)]);
  if (isKnown) return;
  const name = JSON.stringify(queue);
  remark(flags.json, `no job was ever in the queue ${name}, and no node serves it: is the name right?`);
}

function limitOf<T>(given: OrNone<T>): T | null {
  return given === "none" ? null : given;
}

function concurrency(text: string): OrNone<number> {
  if (text === "none") return text;
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError("expected a whole number from 1, or none");
  return Number(text);
}

function rate(text: string): OrNone<NonNullable<QueueOptions["rate"]>> {
  if (text === "none") return text;
  const [, limit, per] = /^(\d+)\/(.+)$/.exec(text) ?? [];
  try {
    if (limit !== undefined && parseDuration(per, "it") > 0)
      return { limit: Number(limit), per: per as Duration };
  } catch {
    // Handled below.
  }
  throw new InvalidArgumentError("expected a count per duration, such as 100/1s, or none");
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
    { whole: ["queue"], importance: ["queue", "due", "", "oldest", "active", "later", "blocked"] },
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
