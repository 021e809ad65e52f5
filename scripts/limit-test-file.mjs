// Loaded into each test file. The runner's own timeout ends a test, but waits for ever for a file that leaves something open.

import { appendFileSync, readFileSync } from "node:fs";

const limitMs = 15 * 60_000;

if (process.env.NODE_TEST_CONTEXT !== undefined) {
  setTimeout(() => {
    console.error(
      `still open after ${limitMs / 60_000} minutes: ${process.getActiveResourcesInfo().join(", ")}`,
    );
    process.exit(1);
  }, limitMs).unref();

  const times = process.env.ESCAPEMENT_TEST_TIMES;
  if (times !== undefined) process.on("exit", () => appendFileSync(times, timesLine()));
}

/** The processor time of this file and of the processes that it started and waited for, and how long it took, in seconds. */
function timesLine() {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ").at(-1).split(" ");
  const [own, children] = [
    [11, 12],
    [13, 14],
  ].map((places) => places.reduce((sum, place) => sum + Number(fields[place]) / 100, 0));
  const seconds = [own + children, own, children, process.uptime()].map((value) => value.toFixed(1));
  return `${[...seconds, process.argv[1]].join("\t")}\n`;
}
