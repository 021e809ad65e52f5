import { Command, CommanderError } from "commander";
import { EscapementError } from "../errors.ts";
import { version } from "../version.ts";
import { cronCommand } from "./commands/cron.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { explainCommand } from "./commands/explain.ts";
import { initCommand } from "./commands/init.ts";
import { migrateCommand } from "./commands/migrate.ts";
import { schedulesCommand } from "./commands/schedules.ts";
import { startCommand } from "./commands/start.ts";
import { statusCommand } from "./commands/status.ts";
import { tickCommand } from "./commands/tick.ts";
import { verifyCommand } from "./commands/verify.ts";
import { printError } from "./output.ts";

const commands = [
  initCommand,
  startCommand,
  statusCommand,
  tickCommand,
  schedulesCommand,
  cronCommand,
  explainCommand,
  migrateCommand,
  doctorCommand,
  verifyCommand,
];

/** Reads the command line and runs one command; ends with 0, 1 when it failed, or 2 when the line itself is wrong. */
export async function runCommandLine(argv: readonly string[]): Promise<void> {
  const program = new Command("escapement")
    .description(
      "Durable jobs on the database you already have, each with the delivery guarantee it declares.",
    )
    .version(version)
    .showHelpAfterError()
    .exitOverride();
  for (const command of commands) program.addCommand(override(command()));
  program.helpCommand(false).addCommand(helpCommand(program));
  try {
    await program.parseAsync(argv);
  } catch (error) {
    process.exitCode = report(error);
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

/** Commander would end the process itself, also in the commands below a command. */
function override(command: Command): Command {
  for (const one of command.commands) override(one);
  return command.exitOverride();
}

function report(error: unknown): number {
  // Commander has printed its own message, or the help that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof EscapementError) printError(`${error.message} [${error.code}]`, "escapement: ");
  else printError(error);
  return 1;
}
