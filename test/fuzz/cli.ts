import { parseArgs } from "node:util";
import { endOwnHolder } from "../../testbed/connection.ts";
import { fuzz, targets } from "./fuzz.ts";

const usage = "usage: npm run fuzz -- [--messages N] [--seed S] [--transport http|kafka|nats|redis-streams]";

const { values } = parseArgs({
  options: {
    messages: { type: "string", default: "2000" },
    seed: { type: "string", default: "1" },
    transport: { type: "string" },
  },
});
const [messages, seed] = [Number(values.messages), Number(values.seed)];
const names = values.transport === undefined ? Object.keys(targets) : [values.transport];
if (
  !Number.isInteger(messages) ||
  messages < 1 ||
  !Number.isInteger(seed) ||
  names.some((one) => !(one in targets))
) {
  console.error(usage);
  process.exit(1);
}

for (const name of names) {
  const skip = await targets[name]?.skip();
  if (skip) {
    console.log(`${name}: skipped, ${skip}`);
    continue;
  }
  const { sent, taken, slowestMs, grownBytes, what, failures } = await fuzz(name, messages, seed);
  const grown = `${(grownBytes / 1_048_576).toFixed(1)} MiB more held at the end`;
  console.log(
    `${name}: ${sent} broken messages, ${taken} taken with the good ones; ${what}; a good one took ${Math.round(slowestMs)} ms at most; ${grown}`,
  );
  if (failures.length === 0) continue;
  process.exitCode = 1;
  for (const failure of failures) console.error(`  ${failure}`);
  console.error(`  npm run fuzz -- --messages ${messages} --seed ${seed} --transport ${name}`);
}
await endOwnHolder();
