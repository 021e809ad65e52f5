import type { Command } from "commander";
import type { Escapement } from "../../app/escapement.ts";
import { type Duration, parseDuration } from "../../duration.ts";
import { EscapementError } from "../../errors.ts";
import { findConfigFile } from "../../runtime/config-file.ts";
import { type AppFlags, createApp, runningCommand } from "../app.ts";
import { showEvents } from "../events.ts";
import { Running } from "../running.ts";
import { onStopSignal } from "../stop-on-signal.ts";

export interface StartFlags extends AppFlags {
  readonly timeout: string;
  readonly queues?: readonly string[];
  readonly withInputs?: boolean;
}

export function startCommand(): Command {
  return startOptions("start", "run the jobs of the config file until Ctrl-C or SIGTERM").action(
    async (flags: StartFlags) => {
      parseDuration(flags.timeout, "--timeout");
      const { app, running } = await createStartApp(flags);
      // Before the start: jobs run before it is over, and a signal must not cut them off.
      const stopped = untilStopped(app, flags.timeout as Duration, running);
      await startApp(app, flags);
      if (flags.json !== true) console.log("escapement is running; stop it with Ctrl-C");
      await stopped;
    },
  );
}

/** A command that runs the jobs of the config file. */
export function startOptions(name: string, description: string): Command {
  return runningCommand(name, description)
    .option("--queues <names...>", "work only on these queues")
    .option("--timeout <duration>", "how long running jobs may continue at a stop", "30s")
    .option("--with-inputs", "show inputs and results of jobs in --json");
}

/** The app of the config file, which must have jobs; it shows its events. */
export async function createStartApp(flags: StartFlags): Promise<{ app: Escapement; running: Running }> {
  const withInputs = flags.withInputs === true;
  const app = await createApp(flags, "make", {}, { withInputs });
  if (app.definitions.length === 0) throw withoutJobs(flags.config);
  showEvents(app, { json: flags.json === true, withInputs });
  return { app, running: new Running(app) };
}

export async function startApp(app: Escapement, { queues }: StartFlags): Promise<void> {
  try {
    await app.start(queues === undefined ? {} : { queues });
  } catch (error) {
    await app.stop();
    throw error;
  }
}

export function withoutJobs(config: string | undefined): EscapementError {
  const file = config ?? findConfigFile(process.cwd());
  return new EscapementError(
    "invalid-option",
    file === null
      ? `there is nothing to run: ${process.cwd()} has no config file; make one with "escapement init", or name one with --config`
      : `there is nothing to run: ${file} lists no jobs; export them as jobs: [...]`,
  );
}

/** Resolves when a signal has come and everything is written. */
function untilStopped(app: Escapement, timeout: Duration, running: Running): Promise<void> {
  return new Promise((resolve, reject) => {
    onStopSignal(() => {
      const { count } = running;
      // Standard output may be read by a program.
      if (count > 0)
        console.error(
          `waiting for ${count === 1 ? "1 job" : `${count} jobs`}, press Ctrl-C again to stop now`,
        );
      app.stop({ timeout }).then(resolve, reject);
    });
  });
}
