import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join, posix } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..");

const roles = ["client", "worker", "planner", "relay", "reaper"];
const stores = ["memory", "sqlite", "postgres", "mysql", "redis"].map((name) => `stores/${name}`);
const transports = ["kafka", "nats", "redis-streams", "http"].map((name) => `transports/${name}`);

/**
 * Who may import whom, by folder of src/. A folder may always import itself and the core, which is the files
 * directly in src/; the core imports nothing else. Tests may import anything.
 */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  core: [],
  cron: [],
  observe: [],
  opentelemetry: [],
  inbox: [],
  diagnosis: [],
  ...Object.fromEntries([...roles, ...stores, ...transports].map((layer) => [layer, []])),
  planner: ["cron"],
  client: ["diagnosis"],
  // One way to Redis, whoever goes there.
  "transports/redis-streams": ["stores/redis"],
  consumer: ["worker", "inbox", "observe", "transports/http"],
  "stores/open.ts": stores,
  app: [...roles, "cron", "observe", "diagnosis", "stores/open.ts"],
  "index.ts": ["app", ...roles, "cron", "observe", "diagnosis", "operations"],
  operations: ["app", "client", "diagnosis", "cron", "planner"],
  api: ["app", "client", "diagnosis", "operations", "planner"],
  dashboard: ["api", "app"],
  // It reaches the store only through the API: whoever uses it loads nothing else.
  "api-client": [],
  testing: ["app", ...roles, "cron", "stores/memory"],
  http: ["app", ...roles, "cron", "observe"],
  verify: [
    ...[
      "app",
      ...roles,
      "cron",
      "observe",
      "inbox",
      "consumer",
      "testing",
      "stores/open.ts",
      "stores/sqlite",
    ],
    ...transports,
  ],
  cli: [
    "app",
    ...roles,
    "cron",
    "observe",
    "diagnosis",
    "operations",
    "api",
    "dashboard",
    "http",
    "verify",
    "stores/open.ts",
  ],
};

/**
 * Database and broker clients are reached only from the folder of their store or transport. What verify checks must not be seen through
 * what it tests, so that it has connections of its own.
 */
const clients: Readonly<Record<string, string>> = {
  "node:sqlite": "stores/sqlite",
  pg: "stores/postgres",
  mysql2: "stores/mysql",
  ioredis: "stores/redis",
  "prom-client": "observe",
  "@opentelemetry/api": "opentelemetry",
  undici: "transports/http",
  "@platformatic/kafka": "transports/kafka",
  "@nats-io/transport-node": "transports/nats",
  "@nats-io/jetstream": "transports/nats",
};

/** Files of more than 400 lines that are better whole, each with the reason. */
const mayBeLong: Readonly<Record<string, string>> = {
  "src/api-client/wire.ts": "made from the schemas of the API, in one piece",
  "src/store.ts": "the contract is one page that a store's author reads from top to bottom",
};

const longestFileLines = 400;
const sources = files("src/**/*.ts");
const code = [...sources, ...files("{test,bench,examples,scripts,testbed}/**/*.{ts,mjs}")];

/** Tests stand beside their source; what several of them share is in a folder named test. */
function isTest(path: string): boolean {
  return path.endsWith(".test.ts") || path.includes("/test/");
}

test("dependencies point one way", () => {
  const problems = sources.flatMap((path) => {
    if (isTest(path)) return [];
    const from = layerOf(path);
    const allowed = mayImport[from];
    if (allowed === undefined) return [`${path}: ${from} has no rule in mayImport`];
    return relativeImports(path)
      .map((target) => ({ target, to: layerOf(target) }))
      .filter(({ to }) => to !== from && to !== "core" && !allowed.includes(to))
      .map(({ target }) => `${path} imports ${target}, but ${from} may not`);
  });
  assert.deepEqual(problems, []);
});

test("database and broker clients are imported only by their own store or transport", () => {
  const problems = sources
    .filter((path) => !isTest(path))
    .flatMap((path) =>
      specifiers(path)
        .filter((name) => name in clients && ![clients[name], "verify"].includes(layerOf(path)))
        .map((name) => `${path} imports ${name}, which belongs to ${clients[name]}`),
    );
  assert.deepEqual(problems, []);
});

test("a file is named for its concept", () => {
  const nameless = /^(types?|utils?|helpers?|common|misc|shared)\./;
  assert.deepEqual(
    code.filter((path) => nameless.test(basename(path))),
    [],
  );
});

test(`a source file has at most ${longestFileLines} lines, or a reason`, () => {
  const long = sources.filter((path) => read(path).split("\n").length - 1 > longestFileLines);
  assert.deepEqual(
    long.filter((path) => !(path in mayBeLong)),
    [],
  );
  assert.deepEqual(
    Object.keys(mayBeLong).filter((path) => !long.includes(path)),
    [],
    "no longer long: take it off the list",
  );
});

test("links between Markdown files lead somewhere", () => {
  const problems = files("**/*.md").flatMap((path) => {
    const text = read(path).replaceAll(/```[\s\S]*?```|`[^`\n]*`/g, "");
    return [...text.matchAll(/\]\(<?([^)\s#>]+)[^)]*\)|(?:src|href)="([^"#]+)/g)]
      .map(([, link, attribute]) => link ?? attribute ?? "")
      .filter((link) => !/^[a-z]+:/.test(link) && !existsSync(join(root, dirname(path), decodeURI(link))))
      .map((link) => `${path} links to ${link}`);
  });
  assert.deepEqual(problems, []);
});

test("links to headings of Markdown files name one that is there", () => {
  const prose = (path: string): string => read(path).replaceAll(/```[\s\S]*?```/g, "");
  const anchors = (path: string): string[] =>
    [...prose(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
        .replaceAll(" ", "-"),
    );
  const problems = files("**/*.md").flatMap((path) =>
    [...prose(path).matchAll(/\]\(([^)\s#:]*)#([^)\s]+)\)/g)]
      .map(([, link = "", anchor = ""]) => ({ target: link && posix.join(dirname(path), link), anchor }))
      .filter(({ target }) => target === "" || target.endsWith(".md"))
      .filter(({ target, anchor }) => !anchors(target || path).includes(anchor))
      .map(({ target, anchor }) => `${path} links to ${target}#${anchor}`),
  );
  assert.deepEqual(problems, []);
});

test("the lockfile has no download addresses", () => {
  assert.doesNotMatch(read("package-lock.json"), /"resolved": "[a-z+]+:/);
});

test("no test is focused, and none is skipped without a reason", () => {
  const unexplained =
    /\b(?:test|it|describe|suite)\.(?:only|skip|todo)\b|\b(?:only|skip|todo):\s*true\b|\bt\.(?:skip|todo)\(\)/;
  const problems = code.flatMap((path) =>
    read(path)
      .split("\n")
      .flatMap((line, index) => (unexplained.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  );
  assert.deepEqual(problems, [], 'write { skip: "the reason" }');
});

function files(pattern: string): string[] {
  return globSync(pattern, { cwd: root, exclude: ["**/node_modules", "dist", "**/dist", ".git", "coverage"] })
    .map((path) => path.replaceAll("\\", "/"))
    .sort();
}

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** `src/worker/claimer.ts` is in `worker`, `src/stores/sqlite/claim.ts` in `stores/sqlite`, `src/job.ts` in `core`. */
function layerOf(path: string): string {
  const [, first = "", second = "", ...rest] = path.split("/");
  if (first in mayImport) return first;
  if (second === "") return "core";
  const nested = `${first}/${second}`;
  return nested in mayImport || rest.length > 0 ? nested : first;
}

function specifiers(path: string): string[] {
  const imports = read(path).matchAll(/(?:\bfrom|\bimport\(?|\bnew URL\()\s*["']([^"']+)["']/g);
  return [...imports].map(([, specifier]) => specifier ?? "");
}

function relativeImports(path: string): string[] {
  return specifiers(path)
    .filter((specifier) => specifier.startsWith("."))
    .map((specifier) => posix.join(posix.dirname(path), specifier));
}
