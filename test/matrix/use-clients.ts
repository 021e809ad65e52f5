/** Loaded before everything else (`node --import`): gives other versions of the clients than those of this repository. */
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The environment variable that says which packages are taken from which folder. */
export const clientsVariable = "ESCAPEMENT_TEST_CLIENTS";

/** What a test file prints when it first loads one of them: a hook that does nothing must not pass. */
export function clientsLine(folder: string): string {
  return `matrix: clients from ${folder}`;
}

const text = process.env[clientsVariable];
if (text !== undefined) {
  const { packages, folder } = JSON.parse(text) as { packages: string[]; folder: string };
  const parentURL = pathToFileURL(join(folder, "index.js")).href;
  let isSaid = process.env["NODE_TEST_CONTEXT"] === undefined;
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const isReplaced = packages.some((name) => specifier === name || specifier.startsWith(`${name}/`));
      if (!isReplaced) return nextResolve(specifier, context);
      if (!isSaid) process.stderr.write(`${clientsLine(folder)}\n`);
      isSaid = true;
      return nextResolve(specifier, { ...context, parentURL });
    },
  });
}
