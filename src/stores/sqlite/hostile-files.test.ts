import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../clock.ts";
import { type Logger, silentLogger } from "../../log.ts";
import type { Notice } from "../../store/notices.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { until } from "../../testing/until.ts";
import { anyNotice } from "../notice.ts";
import { sqlite } from "./index.ts";

const root = mkdtempSync(join(tmpdir(), "escapement-"));
after(() => rmSync(root, { recursive: true }));
const isRoot = process.geteuid?.() === 0;
const nobody = 65_534;

let folders = 0;
function newFolder(): string {
  folders += 1;
  const folder = join(root, String(folders));
  mkdirSync(folder);
  return folder;
}

async function open(path: string, { log = silentLogger, mode = 0o600 } = {}): Promise<Store> {
  const store = await sqlite({ path, mode }).open({ namespace: "files", clock: systemClock, log });
  await store.migrate();
  return store;
}

function collectWarnings(): { warnings: unknown[]; log: Logger } {
  const warnings: unknown[] = [];
  return { warnings, log: { ...silentLogger, warn: (fields, message) => warnings.push([message, fields]) } };
}

const precious = "precious ".repeat(50_000);

const planted: Readonly<
  Record<string, { skip?: string | false; plant(folder: string, path: string): void }>
> = {
  "a symbolic link to another file": {
    plant(folder, path) {
      writeFileSync(join(folder, "precious"), precious);
      symlinkSync(join(folder, "precious"), path);
    },
  },
  "a symbolic link to nothing": { plant: (folder, path) => symlinkSync(join(folder, "made"), path) },
  "a second name of another file": {
    plant(folder, path) {
      writeFileSync(join(folder, "precious"), precious);
      linkSync(join(folder, "precious"), path);
    },
  },
  "a file of another user": {
    skip: isRoot ? false : "only root can make one",
    plant(folder, path) {
      writeFileSync(join(folder, "precious"), precious);
      writeFileSync(path, "theirs");
      chownSync(path, nobody, nobody);
      chmodSync(path, 0o666);
    },
  },
  "a pipe": { plant: (_, path) => void execFileSync("mkfifo", [path]) },
  "a folder": { plant: (_, path) => mkdirSync(path) },
};

for (const [what, { skip = false, plant }] of Object.entries(planted)) {
  test(`${what} in place of the notices is not touched; the store says so once and polls`, {
    skip,
  }, async () => {
    const folder = newFolder();
    const path = join(folder, "app.db-notices");
    plant(folder, path);
    const before = lstatSync(path);
    const { warnings, log } = collectWarnings();
    const store = await open(join(folder, "app.db"), { log });
    await store.subscribe(() => undefined);
    for (let n = 0; n < 3; n += 1) {
      await store.enqueue({ jobs: [newJob(`job ${n}`)] });
      await delay(10);
    }
    await store.close();
    assert.equal(warnings.length, 1);
    assert.match(JSON.stringify(warnings), /they poll/);
    const { size, ino, mode, mtimeMs } = lstatSync(path);
    assert.deepEqual(
      { size, ino, mode, mtimeMs },
      { size: before.size, ino: before.ino, mode: before.mode, mtimeMs: before.mtimeMs },
    );
    const victim = statSync(join(folder, "precious"), { throwIfNoEntry: false });
    if (victim !== undefined) assert.equal(readFileSync(join(folder, "precious"), "utf8"), precious);
    assert.equal(statSync(join(folder, "made"), { throwIfNoEntry: false }), undefined);
  });
}

test("once a planted file is gone, processes wake each other again", { timeout: 90_000 }, async () => {
  const file = join(newFolder(), "app.db");
  mkdirSync(`${file}-notices`);
  const [store, other] = [await open(file), await open(file)];
  const heard: Notice[] = [];
  await store.subscribe((notice) => heard.push(notice));
  rmSync(`${file}-notices`, { recursive: true });
  for (let n = 0; !heard.some(({ kind }) => kind === "jobs"); n += 1) {
    await other.enqueue({ jobs: [newJob(`job ${n}`)] });
    await delay(50);
  }
  await store.close();
  await other.close();
});

const permissionsOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

/** What a store makes beside and around its database. */
async function made(mode: number, umask: number): Promise<Record<string, string>> {
  const before = process.umask(umask);
  try {
    const folder = newFolder();
    const file = join(folder, "deep", "er", "app.db");
    const store = await open(file, { mode });
    await store.subscribe(() => undefined);
    await store.enqueue({ jobs: [newJob("a")] });
    const files = ["", "-wal", "-shm", "-notices"].map((end) => [
      `app.db${end}`,
      permissionsOf(`${file}${end}`),
    ]);
    await store.close();
    return {
      deep: permissionsOf(join(folder, "deep")),
      er: permissionsOf(join(folder, "deep", "er")),
      ...Object.fromEntries(files),
    };
  } finally {
    process.umask(before);
  }
}

const each = (folder: string, file: string): Record<string, string> => ({
  deep: folder,
  er: folder,
  "app.db": file,
  "app.db-wal": file,
  "app.db-shm": file,
  "app.db-notices": file,
});

test("what the store makes is its owner's alone, under any umask", async () => {
  assert.deepEqual(await made(0o600, 0), each("700", "600"));
  assert.deepEqual(await made(0o600, 0o77), each("700", "600"));
});

test("what the store makes behind a link that leads nowhere yet is its owner's alone, too", async () => {
  const before = process.umask(0o22);
  try {
    const folder = newFolder();
    const link = join(folder, "link.db");
    symlinkSync("between.db", link);
    symlinkSync("real.db", join(folder, "between.db"));
    const store = await open(link);
    await store.subscribe(() => undefined);
    await store.enqueue({ jobs: [newJob("a")] });
    for (const name of ["real.db", "real.db-wal", "real.db-notices"])
      assert.equal(permissionsOf(join(folder, name)), "600", name);
    await store.close();
  } finally {
    process.umask(before);
  }
});

test("mode shares what the store makes with a group, under any umask", async () => {
  assert.deepEqual(await made(0o660, 0o77), each("770", "660"));
  assert.deepEqual(await made(0o640, 0), each("750", "640"));
});

test("files that exist keep their permissions, and the notices get those of the database", async () => {
  const folder = newFolder();
  chmodSync(folder, 0o755);
  const file = join(folder, "app.db");
  writeFileSync(file, "");
  chmodSync(file, 0o664);
  const store = await open(file);
  await store.enqueue({ jobs: [newJob("a")] });
  assert.deepEqual([folder, file, `${file}-wal`, `${file}-notices`].map(permissionsOf), [
    "755",
    "664",
    "664",
    "664",
  ]);
  await store.close();
});

test("root leaves the notices to the owner of the database", {
  skip: isRoot ? false : "only root can",
}, async () => {
  const folder = newFolder();
  chownSync(folder, nobody, nobody);
  const file = join(folder, "app.db");
  writeFileSync(file, "");
  chownSync(file, nobody, nobody);
  const store = await open(file);
  await store.enqueue({ jobs: [newJob("a")] });
  const { uid, gid } = statSync(`${file}-notices`);
  assert.deepEqual([uid, gid], [nobody, nobody]);
  await store.close();
});

test("a mode that would shut the owner out, or let anyone run the file, is refused", () => {
  for (const mode of [0o400, 0o700, 0, -1, 0o1600, 1.5, "0600"]) {
    assert.throws(() => sqlite({ path: "app.db", mode: mode as number }), {
      code: "invalid-option",
      message: /mode .*0o660/,
    });
  }
});

const line = (notices: unknown, namespace: unknown = "files"): string =>
  `${JSON.stringify({ namespace, sender: "someone", notices })}\n`;

test("lines that nobody of ours wrote are a wake-up at most", async () => {
  const file = join(newFolder(), "app.db");
  const store = await open(file);
  const heard: Notice[] = [];
  await store.subscribe((notice) => heard.push(notice));
  const ignored = [
    line([{ kind: "cancel", ids: [1] }, { kind: "cancel", ids: null }, { kind: "jobs" }, null, 7]),
    line({ kind: "cancel", ids: ["a"] }),
    line([{ kind: "queues" }], "another namespace"),
    line([{ kind: "queues" }], ["files"]),
  ];
  appendFileSync(`${file}-notices`, `${ignored.join("")}${line([{ kind: "schedules" }])}`);
  await until("the good line is heard", () => heard.length > 0);
  assert.deepEqual(heard, [{ kind: "schedules" }]);
  heard.length = 0;
  const noise = ["\0\0\0", "[]", "null", "{", '"text"', "\u001b[2J", "x".repeat(10_000)];
  appendFileSync(
    `${file}-notices`,
    `${Array.from({ length: 1_000 }, () => noise.join("\n"))
      .join("\n")
      .slice(0, 500_000)}\n`,
  );
  await until("noise is heard", () => heard.length > 0);
  await delay(0);
  assert.deepEqual(heard.slice(0, anyNotice.length), anyNotice);
  assert(heard.length < 100, `noise was heard as ${heard.length} notices`);
  await store.close();
});

test("of a huge file of notices only the end is read, and it starts over", async () => {
  const file = join(newFolder(), "app.db");
  const store = await open(file);
  const heard: Notice[] = [];
  await store.subscribe((notice) => heard.push(notice));
  // With holes: 64 GiB that take no room, and that no buffer could hold.
  truncateSync(`${file}-notices`, 64 * 2 ** 30);
  await until("the change is heard", () => heard.length > 0);
  assert.deepEqual(heard.slice(0, anyNotice.length), anyNotice);
  await store.enqueue({ jobs: [newJob("a")] });
  assert(statSync(`${file}-notices`).size < 1_000_000);
  await store.close();
});
