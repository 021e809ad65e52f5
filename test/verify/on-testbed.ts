/**
 * `npm run verify -- [--testbed postgres|mysql|redis] [flags of escapement verify]`: the command, on a server that was started for
 * this run alone and that it may therefore restart and kill.
 */
import { Command } from "commander";
import { verifyCommand } from "../../src/cli/commands/verify.ts";
import { type PrivateServer, testbed } from "../../testbed/index.ts";

const servers = ["postgres", "mysql", "redis"] as const;

function takeServer(args: string[]): (typeof servers)[number] | null {
  const place = args.indexOf("--testbed");
  if (place < 0) return null;
  const [, name = ""] = args.splice(place, 2);
  const found = servers.find((one) => one === name);
  if (found === undefined)
    throw new Error(`expected --testbed to be one of ${servers.join(", ")}, got "${name}"`);
  return found;
}

async function open(name: (typeof servers)[number]): Promise<PrivateServer> {
  const server = await testbed[name]({ private: true });
  if (server.skip !== false) throw new Error(server.skip);
  return server;
}

const args = process.argv.slice(2);
const name = takeServer(args);
await using server = name === null ? null : await open(name);
const command = verifyCommand(
  server === null
    ? null
    : {
        url: server.url,
        async restart(abruptly) {
          if (abruptly) await server.kill();
          await server.restart();
        },
      },
);
await new Command("escapement").addCommand(command).parseAsync(["verify", ...args], { from: "user" });
