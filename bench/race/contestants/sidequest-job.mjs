// The job of Sidequest, which finds it by its file. The handler of the race is put where both can reach it.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../peers/package.json", import.meta.url));
const { Job } = await import(pathToFileURL(require.resolve("sidequest")).href);

export class RaceJob extends Job {
  run(load) {
    globalThis.raceHandler(load);
  }
}
