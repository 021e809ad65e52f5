import { Command, CommanderError } from "commander";
import { type ErrorCode, EscapementError, recordError } from "../errors.ts";
import { printable, printableJson } from "../runtime/printable.ts";
import { version } from "../runtime/version.ts";
import { apiCommand, dashboardCommand } from "./commands/api.ts";
import { auditCommand } from "./commands/audit.ts";
import { completionCommand } from "./commands/completion.ts";
import { cronCommand } from "./commands/cron.ts";
import { devCommand } from "./commands/dev.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { enqueueCommand } from "./commands/enqueue.ts";
import { explainCommand } from "./commands/explain.ts";
import { failuresCommand } from "./commands/failures.ts";
import { historyCommand } from "./commands/history.ts";
import { initCommand } from "./commands/init.ts";
import { jobsCommand } from "./commands/jobs.ts";
import { migrateCommand } from "./commands/migrate.ts";
import { nodesCommand, partitionsCommand } from "./commands/nodes.ts";
import { queuesCommand } from "./commands/queues.ts";
import { schedulesCommand } from "./commands/schedules.ts";
import { startCommand } from "./commands/start.ts";
import { statusCommand } from "./commands/status.ts";
import { tickCommand } from "./commands/tick.ts";
import { verifyCommand } from "./commands/verify.ts";
import { printError } from "./output.ts";
import { UsageError } from "./usage-error.ts";

/** In the order in which the help shows them. */
const groups: readonly (readonly [heading: string, commands: readonly (() => Command)[]])[] = [
  [
    "Run:",
    [
      initCommand,
      devCommand,
      startCommand,
      tickCommand,
      migrateCommand,
      enqueueCommand,
      apiCommand,
      dashboardCommand,
    ],
  ],
  [
    "Look:",
    [
      statusCommand,
      jobsCommand,
      () => failuresCommand("dead"),
      () => failuresCommand("lost"),
      queuesCommand,
      schedulesCommand,
      nodesCommand,
      partitionsCommand,
      historyCommand,
      auditCommand,
      explainCommand,
      doctorCommand,
    ],
  ],
  ["Other:", [cronCommand, verifyCommand]],
];

const exitCodes = `
Exit codes: 0 done; 1 it failed, found a problem, or could not do all that was asked; 2 the command line or a setting is wrong; 130 stopped by Ctrl-C before it was done.
Every command takes --json: lists are a line of JSON each, and errors are JSON on standard error.`;

/** All commands, as they are parsed. */
export function createProgram(): Command {
  const program = new Command("escapement")
    .description(
      "Durable jobs on the database you already have, each with the delivery guarantee it declares.",
    )
    .version(version)
    .addHelpText("after", exitCodes)
    .enablePositionalOptions()
    .showHelpAfterError("(see --help)")
    .configureOutput({ writeErr })
    .exitOverride();
  for (const [heading, commands] of groups)
    for (const command of commands) program.addCommand(override(command()).helpGroup(heading));
  program.addCommand(override(completionCommand(() => program)).helpGroup("Other:"));
  program.helpCommand(false).addCommand(helpCommand(program).helpGroup("Other:"));
  return program;
}

/** Reads the command line and runs one command. */
export async function runCommandLine(argv: readonly string[]): Promise<void> {
  const json = argv.includes("--json");
  const program = createProgram();
  if (json) quieten(program);
  // The reader may have read enough: `escapement jobs ls | head`.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
  try {
    await program.parseAsync(argv);
  } catch (error) {
    process.exitCode = report(error, json);
    // An attempt to reach a dead server may be under way for longer than anybody waits.
    setTimeout(() => process.exit(), 1_000).unref();
  }
}

/** Commander's own help knows only the first level: `help schedules show` would show all of `schedules`. */
function helpCommand(program: Command): Command {
  return new Command("help")
    .description("show the help of a command")
    .argument("[command...]", "such as schedules show")
    .exitOverride()
    .action((path: readonly string[]) => {
      let command = program;
      for (const name of path) {
        const next = command.commands.find((one) => one.name() === name);
        if (next === undefined) return command.error(`error: unknown command '${path.join(" ")}'`);
        command = next;
      }
      command.outputHelp();
    });
}

/** Commander would end the process itself, even in subcommands. */
function override(command: Command): Command {
  for (const one of command.commands) override(one);
  return command
    .exitOverride()
    .enablePositionalOptions()
    .showHelpAfterError("(see --help)")
    .configureOutput({ writeErr });
}

/** What was typed, or pasted, appears in the message. */
function writeErr(text: string): void {
  process.stderr.write(text.split("\n").map(printable).join("\n"));
}

/** A program gets one line of JSON for an error, and nothing else. */
function quieten(command: Command): void {
  command.configureOutput({ writeErr: () => {} });
  for (const one of command.commands) quieten(one);
}

/** The arguments are wrong, whether the parser noticed or the library behind it. */
const wrongValues: ReadonlySet<string> = new Set<ErrorCode>([
  "invalid-option",
  "invalid-duration",
  "invalid-name",
  "invalid-id",
  "invalid-input",
  "invalid-cron",
  "invalid-zone",
  "invalid-schedule",
  "invalid-cursor",
]);

function report(error: unknown, json: boolean): number {
  const isUsage = error instanceof UsageError || (error instanceof CommanderError && error.exitCode !== 0);
  // The help that was asked for.
  if (error instanceof CommanderError && !isUsage) return 0;
  if (json) {
    const { message, code, name } = recordError(error);
    const said = message.replace(/^error: /, "");
    process.stderr.write(
      `${printableJson({ error: { code: isUsage ? "usage" : (code ?? name), message: said } })}\n`,
    );
  } else if (error instanceof EscapementError) printError(`${error.message} [${error.code}]`, "escapement: ");
  else if (error instanceof UsageError) printError(error.message, "escapement: ");
  // Commander has printed its own message.
  else if (!(error instanceof CommanderError)) printError(error);
  return isUsage || (error instanceof EscapementError && wrongValues.has(error.code)) ? 2 : 1;
}
