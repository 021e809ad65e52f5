// `npm run testbed`: keeps one server of each kind running until Ctrl-C, and prints what to put into the environment so
// that `npm test` uses them.

import { endOwnHolder } from "./connection.ts";
import { testbed } from "./index.ts";
import { type KindName, kinds } from "./servers/index.ts";

const names = Object.keys(kinds) as KindName[];
const asked = process.argv.slice(2);
const unknown = asked.find((word) => !names.some((name) => name === word));
if (unknown === undefined) await keep(names.filter((name) => asked.length === 0 || asked.includes(name)));
else {
  const isHelp = ["--help", "-h"].includes(unknown);
  if (!isHelp) console.error(`there is no server ${JSON.stringify(unknown)}`);
  console[isHelp ? "log" : "error"](
    `npm run testbed -- [${names.join("] [")}]\nKeeps these servers running until Ctrl-C, or all of them, and prints the variables that make tests use them.`,
  );
  process.exitCode = isHelp ? 0 : 2;
}

async function keep(wanted: readonly KindName[]): Promise<void> {
  const end = Promise.withResolvers<void>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => end.resolve());
  // A signal listener does not keep a process alive, and neither does the test bed.
  const alive = setInterval(() => {}, 60_000);
  await Promise.race([end.promise, show(wanted)]);
  await end.promise;
  clearInterval(alive);
  await endOwnHolder();
}

async function show(wanted: readonly KindName[]): Promise<void> {
  const lines: string[] = [];
  for (const name of wanted) {
    const server = await testbed[name]();
    if (!server.skip) lines.push(`export ${kinds[name].variable}='${server.url}'`);
  }
  console.log(`\n${lines.join("\n")}\n\nCtrl-C stops them.`);
}
