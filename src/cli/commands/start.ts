import type { Command } from "commander";
import type { Escapement } from "../../app/escapement.ts";
import { type Duration, parseDuration } from "../../duration.ts";
import { type AppFlags, appCommand, createApp } from "../app.ts";
import { showEvents } from "../events.ts";

interface StartFlags extends AppFlags {
  readonly timeout: string;
  readonly queues?: readonly string[];
}

export function startCommand(): Command {
  return appCommand("start", "run the jobs of escapement.config.ts until Ctrl-C or SIGTERM")
    .option("--queues <names...>", "work only on these queues")
    .option("--timeout <duration>", "how long running jobs may go on when stopping", "30s")
    .action(async (flags: StartFlags) => {
      parseDuration(flags.timeout, "--timeout");
      const app = await createApp(flags, "make");
      showEvents(app, flags.json === true);
      try {
        await app.start(flags.queues === undefined ? {} : { queues: flags.queues });
      } catch (error) {
        await app.stop();
        throw error;
      }
      const stopped = untilStopped(app, flags.timeout as Duration);
      if (flags.json !== true) console.log("escapement is running; stop it with Ctrl-C");
      await stopped;
    });
}

/** Resolves when a signal has come and everything is written. Later signals within a second are the same Ctrl-C, told twice. */
function untilStopped(app: Escapement, timeout: Duration): Promise<void> {
  return new Promise((resolve, reject) => {
    let firstAt: number | null = null;
    const stop = (): void => {
      if (firstAt !== null) {
        if (performance.now() - firstAt > 1_000) process.exit(130);
        return;
      }
      firstAt = performance.now();
      app.stop({ timeout }).then(resolve, reject);
    };
    process.on("SIGINT", stop);
    process.on("SIGTERM", stop);
  });
}
