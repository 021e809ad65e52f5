// `npm run testbed`: keeps one server of each kind running until Ctrl-C, and prints what to put into the environment so
// that `npm test` uses them.

import { endOwnHolder } from "./connection.ts";
import { testbed } from "./index.ts";
import { type KindName, kinds } from "./servers/index.ts";

const end = Promise.withResolvers<void>();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => end.resolve());
// A signal listener does not keep a process alive, and neither does the test bed.
const alive = setInterval(() => {}, 60_000);

await Promise.race([end.promise, show()]);
await end.promise;
clearInterval(alive);
await endOwnHolder();

async function show(): Promise<void> {
  const lines: string[] = [];
  for (const name of Object.keys(kinds) as KindName[]) {
    const server = await testbed[name]();
    if (!server.skip) lines.push(`export ${kinds[name].variable}='${server.url}'`);
  }
  console.log(`\n${lines.join("\n")}\n\nCtrl-C stops them.`);
}
