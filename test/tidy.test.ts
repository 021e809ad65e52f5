import assert from "node:assert/strict";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, posix } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..");

const roles = ["client", "worker", "planner", "relay", "reaper"];
const stores = ["memory", "sqlite", "postgres", "mysql", "redis"].map((name) => `stores/${name}`);
const transports = ["kafka", "nats", "redis-streams", "http"].map((name) => `transports/${name}`);

/**
 * Folders that are part of the core: the contract of stores, what travels to brokers, what observes, and what the process
 * and the machine give.
 */
const core = ["store", "message", "telemetry", "runtime"];

/**
 * Who may import whom, by folder of src/. A folder may always import itself and the core, which is these folders and the files
 * directly in src/; the core imports nothing else. Tests may import anything.
 */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  core: [],
  cron: [],
  observe: [],
  opentelemetry: [],
  inbox: [],
  diagnosis: [],
  // What a process holds and owes to the store, whether it runs jobs or publishes them.
  claims: [],
  // What stores share, and what transports share, lies directly in stores/ and transports/.
  stores: [],
  transports: [],
  ...Object.fromEntries(roles.map((layer) => [layer, []])),
  ...Object.fromEntries(stores.map((layer) => [layer, ["stores"]])),
  ...Object.fromEntries(transports.map((layer) => [layer, ["transports"]])),
  worker: ["claims"],
  relay: ["claims"],
  planner: ["cron"],
  client: ["diagnosis"],
  // One way to Redis, for the store and for the streams.
  "transports/redis-streams": ["stores/redis", "transports"],
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
  proof: [
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
    "proof",
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
};

/**
 * The floor plan of a store: what each file directly in its folder is for. Every store has all of them, but for those in `lacks`; what
 * only some need lies in a folder named for its idea.
 */
const floorPlan: Readonly<Record<string, string>> = {
  index: "the factory, and its options",
  store: "which verbs there are, and how each is run",
  handle: "an open namespace: gives each verb its session",
  session: "what a verb works with",
  errors: "the client's errors in our words",
  migrate: "makes the schema",
  health: "what is wrong with the server",
  rows: "a job as it is stored, read and written",
  enqueue: "the way in",
  claim: "takes jobs",
  finish: "ends claims",
  end: "what follows when a job ends: children, keys, counts",
  leases: "extend, report, reap",
  limits: "queues' and keys' limits at a claim",
  change: "update, cancel, redrive",
  prune: "retention",
  questions: "get, list, count, trail",
  depths: "how much each queue has to do",
  operations: "scan, notes, audit log",
  history: "figures by minute and hour",
  queues: "queues and nodes",
  usage: "how much of a limit is used",
  schedules: "schedules and their ledger",
  partitions: "the relay's partitions",
  notices: "wake-ups",
  transact: "a handler's transaction",
  inbox: "markers of a consumer's inbox",
};

/** Which files a store does without, and where their work is done instead. */
const lacks: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "stores/memory": {
    handle: "its data is at hand: store.ts gives each verb its session",
    errors: "there is no client",
    migrate: "there is no schema",
    health: "there is no server",
    depths: "in operations.ts: a pass over all jobs",
    inbox: "an inbox that forgets at a restart would guard nothing",
  },
  "stores/sqlite": {},
  "stores/postgres": {
    finish: "in claim.ts: step, finish and claim are calls of functions/05-finish.sql and 10-claim.sql",
    end: "functions/02-end.sql",
    limits: "functions/07-limits.sql",
    prune: "in change.ts: one call of functions/12-change.sql",
  },
  "stores/mysql": {},
  "stores/redis": {
    handle: "a session runs its scripts itself",
    finish: "in claim.ts: step, finish and claim share the form of their packets",
    end: "lua/shared/end.lua",
    leases: "in claim.ts (extend, report) and change.ts (reap): one script each",
    limits: "lua/shared/limits.lua",
    prune: "in change.ts: one script",
    depths: "in operations.ts: one script",
    transact: "Redis has no transactions that a job could join",
  },
};

/** What the folders of a store are for. */
const storeFolders: Readonly<Record<string, string>> = {
  connection: "the client, and the way to the server or the file",
  caller: "a caller's own connection or transaction",
  jobs: "jobs as the verbs find, insert and count them",
  limits: "lanes, gates and lines",
  partition: "a partition's due jobs, and the table of partitions",
  fast: "verbs of plain jobs in one packet",
  data: "maps, sorted lists and indexes",
  migrations: "the tables, as numbered files",
  schema: "installs tables and functions",
  functions: "the verbs, in SQL",
  lua: "the verbs, as scripts",
  test: "what its tests share",
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
        .filter((name) => name in clients && ![clients[name], "proof"].includes(layerOf(path)))
        .map((name) => `${path} imports ${name}, which belongs to ${clients[name]}`),
    );
  assert.deepEqual(problems, []);
});

test("stores have one floor plan", () => {
  const problems = stores.flatMap((store) => {
    const found = files(`src/${store}/*.ts`).filter((path) => !isTest(path));
    const names = found.map((path) => basename(path, ".ts"));
    const reasons = lacks[store] ?? {};
    const folders = foldersIn(`src/${store}`).map((folder) => basename(folder));
    return [
      ...names
        .filter((name) => !(name in floorPlan))
        .map((name) => `${name}.ts is not in floorPlan: put it into a folder`),
      ...folders.filter((name) => !(name in storeFolders)).map((name) => `${name}/ is not in storeFolders`),
      ...Object.keys(floorPlan)
        .filter((name) => !names.includes(name) && !(name in reasons))
        .map((name) => `${name}.ts is missing: say in lacks where its work is done`),
      ...Object.keys(reasons)
        .filter((name) => names.includes(name) || !(name in floorPlan))
        .map((name) => `lacks says that it has no ${name}.ts`),
    ].map((problem) => `${store}: ${problem}`);
  });
  assert.deepEqual(problems, []);
});

test("every rule is about something that is there", () => {
  const layers = [
    ...Object.entries(mayImport).flat(2),
    ...core,
    ...Object.values(clients),
    ...Object.keys(lacks),
  ];
  const gone = [...new Set(layers)].filter(
    (layer) => layer !== "core" && !existsSync(join(root, inSources(layer))),
  );
  assert.deepEqual(gone, []);
  const present = stores.flatMap((store) => foldersIn(inSources(store)).map((folder) => basename(folder)));
  assert.deepEqual(
    Object.keys(storeFolders).filter((name) => !present.includes(name)),
    [],
  );
});

test("ARCHITECTURE's tree has every folder of src/ and test/, and nothing that is gone", () => {
  const shown = treeOf(read("docs/ARCHITECTURE.md"));
  const missing = [
    ...foldersIn("src"),
    ...foldersIn("test"),
    ...stores.map(inSources),
    ...transports.map(inSources),
  ].filter((folder) => !shown.some((path) => path === `${folder}/` || path.startsWith(`${folder}/`)));
  assert.deepEqual(missing, [], "say what it is for");
  assert.deepEqual(
    shown.filter((path) => globSync(path, { cwd: root }).length === 0),
    [],
    "it is not there",
  );
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

/** Words that are not technical English, or were overused here, and what to write instead. */
const plainer: Readonly<Record<string, string>> = {
  "in vain": "without success",
  anew: "again",
  whoever: "who, anyone who",
  nobody: "no process, no one, or the passive voice",
  shall: "must",
  mend: "fix",
  mended: "fixed",
  "for ever": "forever",
  "at the most": "at most",
  "at the least": "at least",
  "what becomes of": "the state, outcome or fate of",
  "what became of": "the state, outcome or fate of",
  "without a word": "silently",
  "on the wall": "local time",
};

test("the docs use the everyday word of the field", () => {
  const pages = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", ...files("docs/*.md")];
  const banned = new RegExp(`\\b(?:${Object.keys(plainer).join("|")})\\b`, "gi");
  const problems = pages.flatMap((path) =>
    // Code, addresses of links and quoted names of tests are as they are.
    read(path)
      .replaceAll(/```[\s\S]*?```/g, (block) => block.replaceAll(/[^\n]/g, ""))
      .replaceAll(/`[^`\n]*`|\]\([^)\n]*\)|"[^"\n]*"/g, "")
      .split("\n")
      .flatMap((line, index) =>
        [...line.matchAll(banned)].map(
          ([word]) => `${path}:${index + 1}: "${word}"; write: ${plainer[word.toLowerCase()]}`,
        ),
      ),
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

function inSources(layer: string): string {
  return `src/${layer}`;
}

/** The paths of the tree: names stand before two spaces, below the folder that is not indented. */
function treeOf(markdown: string): string[] {
  const [, tree = ""] = /## The tree\n+```\n([\s\S]*?)```/.exec(markdown) ?? [];
  let top = "";
  return tree.split("\n").flatMap((line) => {
    const [names = ""] = /^[^ ]+|^(?: {2}[\w*{},./-]+(?:\.ts|\/))+/.exec(line) ?? [];
    if (line !== "" && !line.startsWith(" ")) top = names;
    const paths = line.startsWith(" ")
      ? names
          .trim()
          .split(/ +/)
          .map((name) => `${top}${name}`)
      : [names];
    return paths.filter((path) => path !== "").flatMap(withoutBraces);
  });
}

/** `a/{b,c}/` is `a/b/` and `a/c/`. */
function withoutBraces(path: string): string[] {
  const [whole, names] = /\{([^}]*)\}/.exec(path) ?? [];
  return whole === undefined ? [path] : (names ?? "").split(",").map((name) => path.replace(whole, name));
}

/** The folders directly in it. */
function foldersIn(folder: string): string[] {
  const entries = readdirSync(join(root, folder), { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => `${folder}/${name}`);
}

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
  const nested = `${first}/${second}`;
  if (core.includes(first)) return "core";
  if (nested in mayImport) return nested;
  if (first in mayImport) return first;
  if (second === "") return "core";
  return rest.length > 0 ? nested : first;
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
