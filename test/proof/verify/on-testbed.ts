/**
 * `npm run verify -- [--testbed postgres|mysql|redis] [--to redis|nats|kafka|http] [flags of escapement verify]`: the command, on servers
 * that were started for this run alone and that it may therefore restart and kill.
 */
import { Command } from "commander";
import { type OwnServer, verifyCommand } from "../../../src/cli/commands/verify.ts";
import { type PrivateServer, testbed } from "../../../testbed/index.ts";
import { openBroker } from "./own-broker.ts";

const stores = ["postgres", "mysql", "redis"] as const;
const brokers = ["redis", "nats", "kafka", "http"] as const;

/** Takes a flag out whose value is one of the test bed's names; anything else is left to the command where that is allowed. */
function take<T extends string>(
  args: string[],
  flag: string,
  names: readonly T[],
  orElse: boolean,
): T | null {
  const place = args.indexOf(flag);
  const value = args[place + 1] ?? "";
  const found = names.find((one) => one === value);
  if (place < 0 || (found === undefined && orElse)) return null;
  if (found === undefined)
    throw new Error(`expected ${flag} to be one of ${names.join(", ")}, got "${value}"`);
  args.splice(place, 2);
  return found;
}

async function openStore(name: (typeof stores)[number]): Promise<PrivateServer> {
  const server = await testbed[name]({ private: true });
  if (server.skip !== false) throw new Error(server.skip);
  return server;
}

function asOwn(server: PrivateServer): OwnServer {
  return {
    url: server.url,
    async restart(abruptly) {
      if (abruptly) await server.kill();
      await server.restart();
    },
  };
}

const args = process.argv.slice(2);
const storeName = take(args, "--testbed", stores, false);
const brokerName = take(args, "--to", brokers, true);
await using server = storeName === null ? null : await openStore(storeName);
await using place = brokerName === null ? null : await openBroker(brokerName);
if (place !== null && place.skip !== false) throw new Error(place.skip);
const command = verifyCommand(server === null ? null : asOwn(server), place?.broker ?? null);
await new Command("escapement").addCommand(command).parseAsync(["verify", ...args], { from: "user" });
