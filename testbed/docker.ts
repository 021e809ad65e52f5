import { spawnSync } from "node:child_process";
import type { Account } from "./account.ts";
import type { Command } from "./command.ts";

let problem: { readonly text: string | undefined } | undefined;
let containers = 0;

/** Why Docker cannot be used here, or undefined when it can. */
export async function dockerProblem(): Promise<string | undefined> {
  problem ??= { text: findProblem() };
  return problem.text;
}

function findProblem(): string | undefined {
  // Servers of one cluster reach each other by loopback addresses, which needs the host's network.
  if (process.platform !== "linux") return "Docker is used on Linux only";
  const { error, status } = spawnSync("docker", ["info"], { stdio: "ignore", timeout: 10_000 });
  if (error) return "Docker is not on this machine";
  return status === 0 ? undefined : "Docker does not answer (docker info)";
}

/** The same program with the same arguments, ports and folders, but from an image. */
export function containerCommand(options: {
  readonly image: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly folder: string | undefined;
  readonly account: Account | undefined;
}): Command {
  const container = `escapement-testbed-${process.pid}-${++containers}`;
  const { uid, gid } = options.account ?? { uid: process.getuid?.(), gid: process.getgid?.() };
  const args = [
    ...["run", "--rm", "--network=host", `--name=${container}`, `--user=${uid}:${gid}`],
    // Postgres asks for the name of the user that it runs as.
    ...["--volume=/etc/passwd:/etc/passwd:ro", "--volume=/etc/group:/etc/group:ro"],
    ...(options.folder === undefined ? [] : [`--volume=${options.folder}:${options.folder}`]),
    ...Object.keys(options.env).map((name) => `--env=${name}`),
    ...[`--entrypoint=${options.program}`, options.image, ...options.args],
  ];
  return { file: "docker", args, env: options.env, account: undefined, container };
}
