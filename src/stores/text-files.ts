import { readdirSync, readFileSync } from "node:fs";

/**
 * The text of every file below a folder, by its path from there. Only the sources read files: in the package, the build has
 * put the texts themselves in the place of the modules that call this, so bundlers can follow.
 *
 * @param ending such as `.sql`
 */
export function readTextFiles(folder: URL, ending: string): Readonly<Record<string, string>> {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(ending))
    .map((path) => path.replaceAll("\\", "/"))
    .sort();
  return Object.fromEntries(paths.map((path) => [path, readFileSync(new URL(path, folder), "utf8")]));
}
