import { spawn } from "node:child_process";
import { once } from "node:events";
import { install } from "../../testbed/apt.ts";
import { cached } from "../../testbed/cache.ts";

const version = "4.32.5";

/** Where Schemathesis was installed, for Python's search path. It is fetched once and kept with the test bed's servers. */
export async function fetchSchemathesis(): Promise<string> {
  return cached(`schemathesis-${version}`, async (folder) => {
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder];
    const get = (): Promise<number> => python([...pip, `schemathesis==${version}`], {});
    if ((await get()) === 0) return;
    const refusal = await install(["python3", "python3-pip"]);
    if (refusal !== undefined || (await get()) !== 0)
      throw new Error(`Schemathesis cannot be had: ${refusal ?? "pip could not install it"}`);
  });
}

/** Runs it to its end in `cwd`, where it keeps what it found; what it prints goes to this process's output. */
export function runSchemathesis(folder: string, args: readonly string[], cwd: string): Promise<number> {
  return python(["-m", "schemathesis.cli", "run", ...args], { PYTHONPATH: folder }, cwd);
}

async function python(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd = process.cwd(),
): Promise<number> {
  const stdio = ["ignore", "inherit", "inherit"] as const;
  const child = spawn("python3", args, { cwd, env: { ...process.env, ...env }, stdio: [...stdio] });
  const [code]: (number | null)[] = await once(child, "exit").catch(() => [null]);
  return code ?? 1;
}
