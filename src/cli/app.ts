import { Command } from "commander";
import { Escapement } from "../app/escapement.ts";
import type { Surroundings } from "../app/open-store.ts";
import { Operations } from "../operations/operations.ts";
import { findConfigFile, loadConfigFile } from "../runtime/config-file.ts";
import { type Runtime, systemRuntime } from "../runtime/runtime.ts";
import { shellWord } from "../runtime/shell-word.ts";
import type { EscapementOptions } from "../settings.ts";
import { CommandPatience, patienceMs, remarkTrouble, type ShowTrouble } from "./patience.ts";
import { duration } from "./times.ts";

export interface AppFlags {
  readonly store?: string;
  readonly namespace?: string;
  readonly config?: string;
  readonly json?: boolean;
  /** How long to go on while the store does not answer. Commands that run until they are stopped mean something else by it. */
  readonly timeout?: number | string;
}

/** A command about an app: which store, which namespace, and whether to print for a person or a program. */
export function runningCommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .option("--store <url>", "the store, e.g. sqlite:app.db (default: ESCAPEMENT_STORE, or the config file)")
    .option("--namespace <name>", "the namespace (default: ESCAPEMENT_NAMESPACE, or the config file)")
    .option(
      "--config <file>",
      "the config file (default: escapement.config.ts, .mts, .js, .mjs or .json here)",
    )
    .option("--json", "answer in JSON");
}

/** The same for a command that ends by itself, and so waits for its store for a while only. */
export function appCommand(name: string, description: string): Command {
  return runningCommand(name, description).option(
    "--timeout <duration>",
    "how long to go on while the store does not answer (default: 1m)",
    duration,
  );
}

/** `ask`: makes nothing, so a misspelt address is an error and not an empty store. `make`: makes the store where it is missing. */
export type Manner = "ask" | "make";

/** An app of the settings found here. */
export async function createApp(
  flags: AppFlags,
  manner: Manner,
  options: EscapementOptions = {},
  { patience, ...more }: Pick<Surroundings, "withInputs"> & Pick<Runtime, "patience"> = {},
): Promise<Escapement> {
  const file = flags.config ?? findConfigFile(process.cwd());
  const config = file === null ? null : await loadConfigFile(file);
  const surroundings = { ...more, config, mustExist: manner === "ask" };
  const runtime = patience === undefined ? systemRuntime : { ...systemRuntime, patience };
  return new Escapement({ ...storeOptions(flags), ...options }, runtime, surroundings);
}

/**
 * Runs something with an app of the settings found here, and stops it whatever happens. A store that does not answer is called again for a
 * minute, or as long as --timeout says, with a remark to the user.
 */
export async function withApp<T>(
  flags: AppFlags,
  manner: Manner,
  run: (app: Escapement) => Promise<T>,
  options: EscapementOptions = {},
  show: ShowTrouble = remarkTrouble(flags.json),
): Promise<T> {
  const ms = typeof flags.timeout === "number" ? flags.timeout : patienceMs;
  const patience = new CommandPatience(ms, show);
  await using app = await createApp(flags, manner, options, { patience });
  return await run(app);
}

/** The same with what people do. The store must be there. */
export function withOperations<T>(
  flags: AppFlags,
  run: (operations: Operations, app: Escapement) => Promise<T>,
): Promise<T> {
  return withApp(flags, "ask", (app) => run(new Operations(app), app));
}

/**
 * An advice whose command, if it has one, goes to the store that this command was given: pasted as it is, it would go elsewhere. An address
 * with a login is left out, since it would end up in histories and logs.
 */
export function here(advice: string, { store, namespace, config }: AppFlags): string {
  if (!/\bescapement [a-z]/.test(advice)) return advice;
  const place = [
    ...(store === undefined || /\/\/[^/]*@/.test(store) ? [] : [`--store ${shellWord(store)}`]),
    ...(namespace === undefined ? [] : [`--namespace ${shellWord(namespace)}`]),
    ...(config === undefined ? [] : [`--config ${shellWord(config)}`]),
  ].join(" ");
  if (place === "") return advice;
  return advice.includes(" -- ") ? advice.replace(" -- ", ` ${place} -- `) : `${advice} ${place}`;
}

function storeOptions({ store, namespace }: AppFlags): EscapementOptions {
  return { ...(store === undefined ? {} : { store }), ...(namespace === undefined ? {} : { namespace }) };
}
