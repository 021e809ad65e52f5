import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Command } from "commander";
import { parseDuration } from "../../duration.ts";
import { EscapementError } from "../../errors.ts";
import { findConfigFile } from "../../runtime/config-file.ts";
import { AppChild, type Report } from "../dev/app-child.ts";
import { say } from "../dev/say.ts";
import { SourceWatcher } from "../dev/source-watcher.ts";
import { portNumber } from "../port-number.ts";
import { onStopSignal } from "../stop-on-signal.ts";
import { dashboardPort } from "./api.ts";
import { type StartFlags, startOptions, withoutJobs } from "./start.ts";

interface DevFlags extends StartFlags {
  readonly port?: number;
}

export function devCommand(): Command {
  return startOptions(
    "dev",
    "run the jobs of the config file with the dashboard; restart when sources change",
  )
    .option(
      "--port <n>",
      `where the dashboard listens; 0 takes a free one (default: ${dashboardPort}, or a free one if that is taken)`,
      portNumber,
    )
    .action(async (flags: DevFlags) => {
      parseDuration(flags.timeout, "--timeout");
      const config = configOf(flags);
      const watcher = new SourceWatcher(dirname(config));
      try {
        await new Session(flags, config, watcher).run();
      } finally {
        watcher.close();
      }
    });
}

/** One process of the app after another, each with the sources as they are when it starts. */
class Session {
  readonly #flags: DevFlags;
  readonly #config: string;
  readonly #watcher: SourceWatcher;
  readonly #stopping = new AbortController();
  #url: string | null = null;
  #child: AppChild | null = null;
  #failure: EscapementError | null = null;

  constructor(flags: DevFlags, config: string, watcher: SourceWatcher) {
    this.#flags = flags;
    this.#config = config;
    this.#watcher = watcher;
  }

  async run(): Promise<void> {
    const { signal } = this.#stopping;
    onStopSignal(
      () => this.#stop(),
      () => this.#child?.kill(),
    );
    while (!signal.aborted) {
      // What changed until now is what the next process reads.
      this.#watcher.take();
      const child = this.#start();
      const files = await this.#watcher.next(signal);
      if (!signal.aborted) this.#sayChanged(files, child);
      if (await child.stop())
        say(this.#flags.json, "ended", { how: "killed" }, "the app did not stop in time and was killed");
    }
    if (this.#failure !== null) throw this.#failure;
  }

  #start(): AppChild {
    const { json, port } = this.#flags;
    const order = {
      flags: this.#flags,
      config: this.#config,
      port: this.#url === null ? (port ?? dashboardPort) : Number(new URL(this.#url).port),
      mayMove: port === undefined || port === 0,
      announced: this.#url,
    };
    const onEnd = (how: string): void =>
      say(json, "ended", { how }, `the app ended on its own: ${how}; the next change starts it again`);
    this.#child = new AppChild(order, (report) => this.#hear(report), onEnd);
    return this.#child;
  }

  #hear(report: Report): void {
    if (report.type === "running") {
      this.#url = report.url;
      return;
    }
    const { code, message } = report.error;
    if (report.isFinal) {
      this.#failure = new EscapementError("invalid-option", message);
      this.#stopping.abort();
      return;
    }
    say(
      this.#flags.json,
      "broken",
      { error: report.error },
      `${message} [${code}]; waiting for the next change`,
    );
  }

  #sayChanged(files: readonly string[], child: AppChild): void {
    const [first = "", ...others] = files;
    const more = others.length === 0 ? "" : ` and ${others.length} more`;
    say(this.#flags.json, "changed", { files }, `${first}${more}`);
    if (!child.isOver) say(this.#flags.json, "restarting", {});
  }

  #stop(): void {
    const isRunning = this.#child?.isOver === false;
    say(this.#flags.json, "stopping", {}, isRunning ? "press Ctrl-C again to stop now" : "");
    this.#stopping.abort();
  }
}

function configOf({ config }: DevFlags): string {
  const file = config === undefined ? findConfigFile(process.cwd()) : resolve(config);
  if (file === null) throw withoutJobs(undefined);
  if (existsSync(file)) return file;
  throw new EscapementError("invalid-option", `there is no config file ${file}; check the path`);
}
