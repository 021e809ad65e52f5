import type { Command } from "commander";
import type { Escapement } from "../../app/escapement.ts";
import { findConfigFile } from "../../config-file.ts";
import { type Duration, parseDuration } from "../../duration.ts";
import { EscapementError } from "../../errors.ts";
import { type AppFlags, appCommand, createApp } from "../app.ts";
import { showEvents } from "../events.ts";
import { Running } from "../running.ts";

interface StartFlags extends AppFlags {
  readonly timeout: string;
  readonly queues?: readonly string[];
  readonly withInputs?: boolean;
}

export function startCommand(): Command {
  return appCommand("start", "run the jobs of the config file until Ctrl-C or SIGTERM")
    .option("--queues <names...>", "work only on these queues")
    .option("--timeout <duration>", "how long running jobs may go on when stopping", "30s")
    .option("--with-inputs", "show inputs and results of jobs in --json")
    .action(async (flags: StartFlags) => {
      parseDuration(flags.timeout, "--timeout");
      const withInputs = flags.withInputs === true;
      const app = await createApp(flags, "make", {}, { withInputs });
      if (app.definitions.length === 0) throw withoutJobs(flags.config);
      showEvents(app, { json: flags.json === true, withInputs });
      const running = new Running(app);
      try {
        await app.start(flags.queues === undefined ? {} : { queues: flags.queues });
      } catch (error) {
        await app.stop();
        throw error;
      }
      const stopped = untilStopped(app, flags.timeout as Duration, running);
      if (flags.json !== true) console.log("escapement is running; stop it with Ctrl-C");
      await stopped;
    });
}

function withoutJobs(config: string | undefined): EscapementError {
  const file = config ?? findConfigFile(process.cwd());
  return new EscapementError(
    "invalid-option",
    file === null
      ? `there is nothing to run: ${process.cwd()} has no config file; make one with "escapement init", or name one with --config`
      : `there is nothing to run: ${file} lists no jobs; export them as jobs: [...]`,
  );
}

/** Resolves when a signal has come and everything is written. Later signals within a second are the same Ctrl-C, told twice. */
function untilStopped(app: Escapement, timeout: Duration, running: Running): Promise<void> {
  return new Promise((resolve, reject) => {
    let firstAt: number | null = null;
    const stop = (): void => {
      if (firstAt !== null) {
        if (performance.now() - firstAt > 1_000) process.exit(130);
        return;
      }
      firstAt = performance.now();
      const { count } = running;
      // Standard output may be read by a program.
      if (count > 0)
        console.error(
          `waiting for ${count === 1 ? "1 job" : `${count} jobs`}, press Ctrl-C again to stop now`,
        );
      app.stop({ timeout }).then(resolve, reject);
    };
    process.on("SIGINT", stop);
    process.on("SIGTERM", stop);
  });
}
