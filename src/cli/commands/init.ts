import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Command } from "commander";
import { EscapementError } from "../../errors.ts";
import { print } from "../output.ts";

const files: Readonly<Record<string, string>> = {
  "escapement.config.ts": `import type { EscapementOptions } from "escapement";
import { hello } from "./jobs/hello.ts";

const options: EscapementOptions = {
  store: "sqlite:.escapement/escapement.db",
  jobs: [hello],
};

export default options;
`,
  "jobs/hello.ts": `import { defineJob } from "escapement";

/** Runs at least once for each job that is enqueued; a failure is tried again. */
export const hello = defineJob<{ name: string }>({
  name: "hello",
  run: ({ input, log }) => {
    log(\`greeting \${input.name}\`);
    return \`Hello, \${input.name}!\`;
  },
});
`,
  "enqueue.ts": `import { createEscapement } from "escapement";
import { hello } from "./jobs/hello.ts";

await using app = createEscapement();
const { id } = await app.enqueue(hello, { name: "world" });
console.log(\`enqueued \${id}\`);
`,
};

export function initCommand(): Command {
  return new Command("init")
    .description("write a config, an example job and a script that enqueues it")
    .argument("[folder]", "where", ".")
    .option("--json", "answer in JSON")
    .action((folder: string, flags: { json?: boolean }) => {
      const written = writeProject(resolve(folder));
      print(flags.json, { written }, () => [
        ...written.map((name) => `wrote ${name}`),
        "",
        "next: npx escapement start, and in another terminal: node enqueue.ts",
      ]);
    });
}

/** All or nothing: a project that has one of the files already is left as it is. */
function writeProject(folder: string): string[] {
  const existing = Object.keys(files).filter((name) => existsSync(join(folder, name)));
  if (existing.length > 0) {
    throw new EscapementError(
      "invalid-option",
      `${existing.join(" and ")} exist already; nothing was written. Remove them, or init another folder`,
    );
  }
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return Object.keys(files);
}
