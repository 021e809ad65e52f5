import { existsSync } from "node:fs";

/**
 * The URL of a module beside the calling one, by its name without an ending: `.ts` when run from source, `.js` when built.
 *
 * @param from the caller's `import.meta.url`, which a bundle in CommonJS form has none of.
 * @returns null in a bundle: there the module is not a file.
 */
export function siblingModule(from: string | undefined, name: string): URL | null {
  if (from === undefined) return null;
  const url = new URL(`./${name}${from.slice(from.lastIndexOf("."))}`, from);
  return existsSync(url) ? url : null;
}
