import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import {
  appendFile,
  cp,
  glob,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, sep } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";

const root = join(import.meta.dirname, "..");
const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"));

let folder = "";
let consumer = "";

before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "escapement-package-")));
  consumer = join(folder, "consumer");
  await mkdir(consumer);
  await writeFile(
    join(consumer, "package.json"),
    '{ "name": "consumer", "private": true, "type": "module" }',
  );
  const tarball = await pack();
  await npm(consumer, "install", tarball, "--prefer-offline", "--no-audit", "--no-fund");
});

after(() => rm(folder, { recursive: true, force: true }));

test("the package holds what it exports, and neither sources nor tests", async () => {
  const installed = join(consumer, "node_modules", manifest.name);
  const files = await Array.fromAsync(glob("**/*.*", { cwd: installed }));
  const targets = Object.values<string | Record<string, string>>(manifest.exports)
    .flatMap((target) => (typeof target === "string" ? target : Object.values(target)))
    .map((target) => target.replace("./", ""));
  assert.deepEqual(
    targets.filter((target) => !files.includes(target)),
    [],
    "exported, but not in the package",
  );
  assert.deepEqual(
    files.filter((file) => /\.test\.|(?<!\.d)\.ts$/.test(file)),
    [],
    "in the package, but of no use there",
  );
});

test("links lead to files of the package, or to folders that docs/README.md says are in the repository only", async () => {
  const installed = join(consumer, "node_modules", manifest.name);
  const [note = ""] =
    /^Links into .+ of the repository\./m.exec(await readFile(join(installed, "docs/README.md"), "utf8")) ??
    [];
  const elsewhere = [...note.matchAll(/`(\S+)\/`/g)].map(([, name = ""]) => name);
  const dead: string[] = [];
  for await (const page of glob("{*.md,docs/**/*.md}", { cwd: installed })) {
    const text = await readFile(join(installed, page), "utf8");
    for (const [, link = ""] of text.matchAll(/\]\((?![a-z]+:|#)([^)#\s]+)/g)) {
      const target = join(dirname(page), link);
      const [top = ""] = target.split(sep);
      const isElsewhere = page !== "README.md" && elsewhere.includes(top) && existsSync(join(root, target));
      if (!isElsewhere && !existsSync(join(installed, target))) dead.push(`${page} links to ${link}`);
    }
  }
  assert.deepEqual(dead, []);
});

test("what operators load into other programs is in the package", () => {
  for (const file of ["alerts.yml", "grafana-dashboard.json"]) {
    assert(existsSync(join(consumer, "node_modules", manifest.name, "examples/observability", file)), file);
  }
});

for (const type of ["module", "commonjs"]) {
  test(`the quick start of the README works when it is pasted into a package of type ${type}`, async () => {
    const text = await readFile(join(consumer, "node_modules", manifest.name, "README.md"), "utf8");
    const [, file = ""] = /run `node (\S+)`:/.exec(text) ?? [];
    const [, code = ""] = /```ts\n([\s\S]+?)\n```/.exec(text) ?? [];
    const project = await newProject(JSON.stringify({ type }));
    await writeFile(join(project, file), code);
    assert.match(await run(project, process.execPath, [file]), /^Hello, Ada! \(attempt 1\)$/m);
  });
}

test("the API of the installed package answers, with nothing else installed", async () => {
  await writeFile(
    join(consumer, "api.js"),
    `import { createEscapement, defineJob } from "escapement";
     import { createApi } from "escapement/api";
     import { createClient } from "escapement/client";

     const app = createEscapement({ store: "memory:", jobs: [defineJob({ name: "a" })] });
     const api = createApi(app, { insecure: true });
     const client = createClient({ url: "http://localhost", fetch: (url, init) => api(new Request(url, init)) });
     const { outcome } = await client.enqueue({ name: "a" });
     const error = await client.enqueue({ name: "b" }).catch(({ code }) => code);
     console.log(outcome, error);
     await app.stop();`,
  );
  assert.equal((await run(consumer, process.execPath, ["api.js"])).trim(), "added unknown-job");
  const licenses = join(consumer, "node_modules/escapement/dist/api/THIRD-PARTY-LICENSES.txt");
  assert.match(await readFile(licenses, "utf8"), /^hono [\s\S]*^zod /m);
});

test("the dashboard of the installed package serves its page, and nothing of its sources is in the package", async () => {
  await writeFile(
    join(consumer, "dashboard.js"),
    `import { createEscapement } from "escapement";
     import { createDashboard } from "escapement/dashboard";

     const app = createEscapement({ store: "memory:" });
     const dashboard = createDashboard(app, { insecure: true, basePath: "/jobs" });
     const lengths = [];
     for (const path of ["", "assets/app.js", "assets/app.css", "assets/icon.svg", "api/overview"]) {
       const response = await dashboard(new Request("http://localhost/jobs/" + path));
       lengths.push([response.status, (await response.text()).length > 100]);
     }
     console.log(JSON.stringify(lengths));
     await app.stop();`,
  );
  const answers = JSON.parse(await run(consumer, process.execPath, ["dashboard.js"]));
  assert.deepEqual(answers, Array(5).fill([200, true]));
  const installed = join(consumer, "node_modules", manifest.name);
  const files = await Array.fromAsync(glob("**/*", { cwd: installed }));
  assert.deepEqual(
    files.filter((file) => /^dashboard|\.tsx$|^dist.*(preact|uplot|esbuild)|page-files\.js\.map/.test(file)),
    [],
  );
  const page = await readFile(join(installed, "dist/dashboard/page-files.js"), "utf8");
  assert.doesNotMatch(page, /^import |build\.mjs/m, "it is made of texts, and needs no tool");
  assert.ok(!existsSync(join(consumer, "node_modules/preact")));
  const licenses = join(installed, "dist/dashboard/THIRD-PARTY-LICENSES.txt");
  assert.match(await readFile(licenses, "utf8"), /^preact [\s\S]*MIT/m);
});

test("CommonJS can require the package", async () => {
  await writeFile(join(consumer, "main.cjs"), 'console.log(typeof require("escapement").createEscapement);');
  assert.equal((await run(consumer, process.execPath, ["main.cjs"])).trim(), "function");
});

test("the installed package runs a job in a thread, on a SQLite file", async () => {
  await writeFile(
    join(consumer, "handler.js"),
    `import { isMainThread } from "node:worker_threads";
     export default ({ input }) => ({ doubled: input.value * 2, isMainThread });`,
  );
  await writeFile(
    join(consumer, "main.js"),
    `import { createEscapement, defineJob } from "escapement";
     import { memory } from "escapement/memory";
     import { sqlite } from "escapement/sqlite";
     import { createTestEscapement } from "escapement/testing";

     for (const made of [memory, sqlite, createTestEscapement]) {
       if (typeof made !== "function") throw new TypeError("a subpath lacks its export");
     }
     const double = defineJob({ name: "double", run: new URL("./handler.js", import.meta.url) });
     const app = createEscapement({ store: "sqlite:app.db", jobs: [double] });
     await app.start();
     const { id } = await app.enqueue(double, { value: 21 });
     const result = await app.result(id, { timeout: "30s" });
     await app.stop();
     console.log(JSON.stringify(result));`,
  );
  const output = await run(consumer, process.execPath, ["main.js"]);
  assert.deepEqual(JSON.parse(output), { doubled: 42, isMainThread: false });
});

for (const [format, ending] of [
  ["esm", "mjs"],
  ["cjs", "cjs"],
] as const) {
  test(`a bundle in ${format} form runs without the package beside it`, async () => {
    await writeFile(
      join(consumer, "to-bundle.js"),
      `import { createEscapement, defineJob } from "escapement";

       const greet = defineJob({ name: "greet", run: ({ input }) => "Hello, " + input.name });
       const threaded = defineJob({ name: "threaded", retry: { attempts: 1 }, run: new URL(${JSON.stringify(pathToFileURL(join(consumer, "main.cjs")))}) });
       async function main() {
         const app = createEscapement({ store: "sqlite:app.db", jobs: [greet, threaded] });
         await app.start();
         const { id } = await app.enqueue(greet, { name: "Ada" });
         console.log(await app.result(id, { timeout: "60s" }));
         const refused = await app.enqueue(threaded, null);
         await app.result(refused.id, { timeout: "60s" }).catch((error) => console.log(error.message));
         await app.stop();
       }
       void main();`,
    );
    const bundled = join(folder, `bundled-${format}`);
    const outfile = join(bundled, `app.${ending}`);
    // It warns of clients that are not installed, and of import.meta, which CommonJS has not.
    await build({
      entryPoints: [join(consumer, "to-bundle.js")],
      bundle: true,
      platform: "node",
      format,
      outfile,
      logLevel: "error",
    });
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [outfile], {
      cwd: bundled,
      timeout: 120_000,
    });
    assert.match(stdout, /^Hello, Ada\n/);
    assert.match(stdout, /a handler's thread.*external/, "a handler in a thread is told what to do");
    assert.match(stderr, /the heartbeat's thread.*external/);
  });
}

for (const { format, ending, message } of [
  {
    format: "esm",
    ending: "mjs",
    message: /cannot load the package pg: Dynamic require .*; mark pg as external/,
  },
  { format: "cjs", ending: "cjs", message: /ECONNREFUSED/ },
] as const) {
  test(`a bundle in ${format} form that contains a client uses it, or says that it must be external`, async () => {
    await writeFile(
      join(consumer, "to-bundle-client.js"),
      `import { createEscapement } from "escapement";
       const app = createEscapement({ store: "postgres://nobody@127.0.0.1:1/nothing" });
       app.start().catch(({ message }) => console.log(message)).then(() => process.exit());`,
    );
    const outfile = join(folder, `bundled-client-${format}.${ending}`);
    await build({
      entryPoints: [join(consumer, "to-bundle-client.js")],
      nodePaths: [join(root, "node_modules")],
      bundle: true,
      platform: "node",
      format,
      outfile,
      logLevel: "error",
    });
    assert.match(await run(folder, process.execPath, [outfile]), message);
  });
}

test("a transport whose client is not installed says what to install", async () => {
  await writeFile(
    join(consumer, "transports.js"),
    `import { http } from "escapement/http";
     import { kafka } from "escapement/kafka";
     import { nats } from "escapement/nats";
     import { redisStreams } from "escapement/redis-streams";

     const context = { clock: { now: Date.now }, log: console };
     const routes = [
       kafka({ topic: "t", brokers: "a:1" }),
       nats({ subject: "s", servers: "a:1" }),
       redisStreams({ stream: "s", url: "redis://a:1" }),
       http({ url: "https://host/", secret: "whsec_" + Buffer.alloc(32).toString("base64") }),
     ];
     for (const { transport } of routes) {
       await transport.open(context).then(() => console.log("open"), ({ message }) => console.log(message));
     }`,
  );
  const lines = (await run(consumer, process.execPath, ["transports.js"])).trim().split("\n");
  assert.match(lines[0] ?? "", /npm install @platformatic\/kafka/);
  assert.match(lines[1] ?? "", /npm install @nats-io\/transport-node @nats-io\/jetstream/);
  assert.match(lines[2] ?? "", /npm install ioredis/);
  assert.match(lines[3] ?? "", /npm install undici/);
});

for (const [what, packageJson, extension] of [
  ["an ES module package", '{ "type": "module" }', "ts"],
  ["a CommonJS package, as npm init makes it", '{ "type": "commonjs" }', "mts"],
  ["a package that does not say", "{}", "mts"],
  ["a folder without a package.json", null, "mts"],
] as const) {
  test(`init leaves a project in which every command that it prints works: ${what}`, async () => {
    const project = await newProject(packageJson);
    const command = join(consumer, "node_modules/escapement/dist/cli/main.js");
    const escapement = (...args: string[]): Promise<string> =>
      run(project, process.execPath, [command, ...args]);
    const said = await escapement("init");
    assert.match(said, new RegExp(`next:\n  npx escapement start\n.*\n  node enqueue.${extension}\n`));
    // As a config does that reads a secret before it exports.
    await appendFile(join(project, `escapement.config.${extension}`), "await Promise.resolve();\n");
    const started = spawn(process.execPath, [command, "start"], { cwd: project });
    const lines = { all: "" };
    for (const stream of [started.stdout, started.stderr])
      stream.on("data", (data) => {
        lines.all += data;
      });
    const ended = new Promise((resolve) => started.once("exit", resolve));
    try {
      await until(() => lines.all.includes("is running"), lines);
      const enqueue = await promisify(execFile)(process.execPath, [`enqueue.${extension}`], { cwd: project });
      assert.match(enqueue.stdout, /^enqueued /);
      assert.doesNotMatch(enqueue.stderr, /Warning: (?!SQLite)/, "nothing to worry about");
      await until(() => /succeeded +hello/.test(lines.all), lines);
    } finally {
      started.kill("SIGTERM");
    }
    assert.equal(await ended, 0, lines.all);
    assert.match(await escapement("status"), /default +hello +1/);
    const elsewhere = { ...process.env, ESCAPEMENT_STORE: "sqlite:elsewhere.db" };
    await promisify(execFile)(process.execPath, [`enqueue.${extension}`], { cwd: project, env: elsewhere });
    assert(existsSync(join(project, "elsewhere.db")), "the environment wins, as for every command");
  });
}

test("tick runs what init made, once", async () => {
  const escapement = (...args: string[]): Promise<string> =>
    run(consumer, process.execPath, ["node_modules/escapement/dist/cli/main.js", ...args]);
  await escapement("init");
  await run(consumer, process.execPath, ["enqueue.ts"]);
  const { succeeded, left } = JSON.parse(await escapement("tick", "--json"));
  assert.deepEqual([succeeded, left.count], [1, 0]);
});

test("the declarations type-check strictly for a consumer, down to their own files", async () => {
  const entries = Object.keys(manifest.exports).filter((entry) => entry !== "./package.json");
  await writeFile(
    join(consumer, "main.ts"),
    `import { createEscapement, defineJob } from "escapement";
     import type { NewJob, Store } from "escapement/store";
     ${entries.map((entry, n) => `export * as entry${n} from "escapement${entry.slice(1)}";`).join("\n")}

     const double = defineJob<{ value: number }, number>({ name: "double", run: ({ input }) => input.value * 2 });
     const app = createEscapement({ store: "sqlite:app.db", jobs: [double] });
     export const receipt = await app.enqueue(double, { value: 21 });
     // @ts-expect-error The input is typed by the definition: without types, this line would be no error.
     await app.enqueue(double, { value: "21" });
     export const result: number = await app.result(receipt);
     export const isEnqueued = (store: Store, jobs: readonly NewJob[]) => store.enqueue({ jobs });`,
  );
  const compilerOptions = {
    target: "es2022",
    module: "nodenext",
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    types: ["node"],
    typeRoots: [join(root, "node_modules/@types")],
    // Whoever imports escapement/opentelemetry has its API; the other entries need none of their clients here.
    paths: { "@opentelemetry/api": [join(root, "node_modules/@opentelemetry/api/build/src/index.d.ts")] },
  };
  await writeFile(join(consumer, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["main.ts"] }));
  await run(consumer, process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "--project", "."]);
});

/** A folder beside the consumer's, which has the package too. */
async function newProject(packageJson: string | null): Promise<string> {
  const project = await mkdtemp(join(folder, "project-"));
  if (packageJson !== null) await writeFile(join(project, "package.json"), packageJson);
  await symlink(join(consumer, "node_modules"), join(project, "node_modules"), "junction");
  return project;
}

/** Waits for what a process says, as long as a slow machine may take. */
async function until(holds: () => boolean, lines: { readonly all: string }): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!holds()) {
    assert(performance.now() < deadline, `not said within a minute: ${lines.all}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Builds and packs in a folder of its own, so that two runs at once do not take away each other's `dist`. */
async function pack(): Promise<string> {
  const staging = join(folder, "staging");
  await run(root, process.execPath, ["scripts/build.mjs", join(staging, "dist")]);
  for (const file of ["package.json", "LICENSE", "README.md", ...manifest.files].filter(
    (name) => name !== "dist",
  )) {
    await cp(join(root, file), join(staging, file), { recursive: true });
  }
  await npm(staging, "pack", "--ignore-scripts", "--pack-destination", folder);
  return join(folder, `${manifest.name}-${manifest.version}.tgz`);
}

function npm(cwd: string, ...args: string[]): Promise<string> {
  const { npm_execpath: npmCli, npm_node_execpath: node } = process.env;
  return npmCli && node ? run(cwd, node, [npmCli, ...args]) : run(cwd, "npm", args);
}

async function run(cwd: string, command: string, args: readonly string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(command, args, { cwd, timeout: 120_000 });
    return stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(" ")} failed:\n${stdout ?? ""}${stderr ?? ""}`, { cause: error });
  }
}
