import { statSync } from "node:fs";
import { availableParallelism } from "node:os";

const everything = ["src/**/*.test.ts", "test/**/*.test.ts", "testbed/**/*.test.ts", "examples/*/*.test.ts"];

/**
 * The arguments of `node --test` for `npm test -- <extra>`: every test file, unless `extra` names files, folders or
 * globs; options such as `--test-name-pattern=K3` pass through.
 */
export function testArguments(extra) {
  const paths = extra.filter((arg) => !arg.startsWith("-") && /[/\\*]|\.[a-z]+$/.test(arg));
  const options = extra.filter((arg) => !paths.includes(arg));
  return [
    "--test-reporter=spec",
    // A test that hangs fails, and so does a file that leaves something open: neither holds the others up.
    "--test-timeout=600000",
    `--import=${new URL("limit-test-file.mjs", import.meta.url)}`,
    // One more than there are cores: many tests wait for a server, a lease or a clock.
    `--test-concurrency=${availableParallelism() + 1}`,
    ...options,
    ...(paths.length > 0 ? paths.map(asPattern) : everything),
  ];
}

function asPattern(path) {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory();
  return isFolder ? `${path.replace(/[/\\]$/, "")}/**/*.test.ts` : path;
}
