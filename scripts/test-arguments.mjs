import { statSync } from "node:fs";
import { availableParallelism } from "node:os";

const everything = ["src/**/*.test.ts", "test/**/*.test.ts", "testbed/**/*.test.ts"];

/**
 * The arguments of `node --test` for `npm test -- <extra>`: every test file, unless `extra` names files, folders or
 * globs; options such as `--test-name-pattern=K3` pass through.
 */
export function testArguments(extra) {
  const paths = extra.filter((arg) => !arg.startsWith("-") && /[/\\*]|\.[a-z]+$/.test(arg));
  const options = extra.filter((arg) => !paths.includes(arg));
  return [
    "--test-reporter=spec",
    // Of a file as well as of a test: one that hangs, or leaves something open, fails and does not hold the others up.
    "--test-timeout=600000",
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
