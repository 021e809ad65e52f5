import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { Command } from "commander";
import { EscapementError, recordError } from "../../errors.ts";
import { print } from "../output.ts";

/** `.mts` is an ES module whatever the package says; `.ts` is one only if it says so. */
type Extension = "ts" | "mts";

function filesWith(extension: Extension): Readonly<Record<string, string>> {
  return {
    [`escapement.config.${extension}`]: `import type { EscapementOptions } from "escapement";
import { hello } from "./jobs/hello.${extension}";

const options: EscapementOptions = {
  store: process.env.ESCAPEMENT_STORE ?? "sqlite:.escapement/escapement.db",
  jobs: [hello],
};

export default options;
`,
    [`jobs/hello.${extension}`]: `import { defineJob } from "escapement";

/** Runs at least once for each job that is enqueued; a failure is retried. */
export const hello = defineJob<{ name: string }>({
  name: "hello",
  run: ({ input, log }) => {
    log(\`greeting \${input.name}\`);
    return \`Hello, \${input.name}!\`;
  },
});
`,
    [`enqueue.${extension}`]: `import { createEscapement } from "escapement";
import options from "./escapement.config.${extension}";
import { hello } from "./jobs/hello.${extension}";

const app = createEscapement(options);
const { id } = await app.enqueue(hello, { name: "world" });
console.log(\`enqueued \${id}\`);
await app.stop();
`,
  };
}

export function initCommand(): Command {
  return new Command("init")
    .description("write a config, an example job and a script that enqueues it")
    .argument("[folder]", "where", ".")
    .option("--json", "answer in JSON")
    .action((folder: string, flags: { json?: boolean }) => {
      const target = resolve(folder);
      const extension = extensionFor(target);
      const written = writeProject(target, filesWith(extension));
      const next = nextCommands(target, extension);
      print(flags.json, { written, next }, () => [
        ...written.map((name) => `wrote ${name}`),
        ...(extension === "ts" ? [] : ['(.mts, since package.json does not say "type": "module")']),
        "",
        "next:",
        ...next.map((command) => `  ${command}`),
        `and in another terminal, in the same folder:`,
        `  node enqueue.${extension}`,
      ]);
    });
}

/** All or nothing: a project that has one of the files already is left as it is. */
function writeProject(folder: string, files: Readonly<Record<string, string>>): string[] {
  // Two configs beside each other would be a riddle, so the other extension counts as well.
  const names = Object.keys({ ...filesWith("ts"), ...filesWith("mts") });
  const existing = names.filter((name) => existsSync(join(folder, name)));
  if (existing.length > 0) {
    const [verb, them] = existing.length === 1 ? ["exists", "it"] : ["exist", "them"];
    throw new EscapementError(
      "invalid-option",
      `${existing.join(" and ")} already ${verb}; nothing was written. Remove ${them}, or init another folder`,
    );
  }
  const written: string[] = [];
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text, { flag: "wx" });
      written.push(name);
    }
  } catch (cause) {
    for (const name of written) rmSync(join(folder, name), { force: true });
    throw new EscapementError(
      "invalid-option",
      `cannot write a project to ${folder}: ${recordError(cause).message}; nothing was written. Name a folder that you may write to`,
      { cause },
    );
  }
  return written;
}

function nextCommands(folder: string, extension: Extension): string[] {
  const path = relative(process.cwd(), folder);
  return [
    ...(path === "" ? [] : [`cd ${path}`]),
    ...(canImport(folder, extension) ? [] : ["npm install escapement"]),
    "npx escapement start",
  ];
}

function canImport(folder: string, extension: Extension): boolean {
  try {
    createRequire(join(folder, `enqueue.${extension}`)).resolve("escapement");
    return true;
  } catch {
    return false;
  }
}

/** An existing package keeps its type: its other files may depend on that. */
function extensionFor(folder: string): Extension {
  for (let place = folder; ; place = dirname(place)) {
    const file = join(place, "package.json");
    if (existsSync(file)) return typeOf(file) === "module" ? "ts" : "mts";
    if (dirname(place) === place) return "mts";
  }
}

function typeOf(file: string): unknown {
  try {
    const manifest: unknown = JSON.parse(readFileSync(file, "utf8"));
    return typeof manifest === "object" && manifest !== null && "type" in manifest ? manifest.type : null;
  } catch (error) {
    throw new EscapementError("invalid-option", `cannot read ${file}: ${String(error)}`, { cause: error });
  }
}
