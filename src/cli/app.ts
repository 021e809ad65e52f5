import { Command } from "commander";
import { createEscapement, type Escapement } from "../app/escapement.ts";
import type { EscapementOptions } from "../settings.ts";

export interface AppFlags {
  readonly store?: string;
  readonly namespace?: string;
  readonly json?: boolean;
}

/** A command about an app: which store, which namespace, and whether to answer a person or a program. */
export function appCommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .option(
      "--store <url>",
      "the store, e.g. sqlite:app.db (default: ESCAPEMENT_STORE, or escapement.config.ts)",
    )
    .option("--namespace <name>", "the namespace (default: ESCAPEMENT_NAMESPACE, or escapement.config.ts)")
    .option("--json", "answer in JSON");
}

/** Runs something with an app of the settings found here, and stops it whatever happens. */
export async function withApp<T>(
  flags: AppFlags,
  run: (app: Escapement) => Promise<T>,
  options: EscapementOptions = {},
): Promise<T> {
  await using app = createEscapement({ ...storeOptions(flags), ...options });
  return await run(app);
}

export function storeOptions({ store, namespace }: AppFlags): EscapementOptions {
  return { ...(store === undefined ? {} : { store }), ...(namespace === undefined ? {} : { namespace }) };
}
