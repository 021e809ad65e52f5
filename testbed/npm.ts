import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { cached } from "./cache.ts";
import { run } from "./command.ts";

const timeoutMs = 5 * 60_000;

/**
 * A folder of the cache with these npm packages, such as `pg@8.11.0`, and what they depend on. None of their scripts is run; `finish`
 * does what is needed of them.
 */
export async function npmPackages(
  packages: readonly string[],
  finish: (folder: string) => void = () => {},
): Promise<string> {
  const name = packages.join("+").replaceAll("/", "-");
  return cached(`npm-${name}`, async (folder) => {
    writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
    const { npm_execpath: npm, npm_node_execpath: node } = process.env;
    const start = npm && node ? [node, npm] : ["npm"];
    const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--force"];
    const [file = "npm", ...args] = [...start, "install", "--prefix", folder, ...options, ...packages];
    await run({ file, args, env: {}, account: undefined, container: undefined }, timeoutMs);
    finish(folder);
  });
}
