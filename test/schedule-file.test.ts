import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { readEntries } from "../src/app/schedule-file.ts";
import { newFolder } from "./behaviour/stores.ts";

const program = `
import { createEscapement, defineJob } from ${JSON.stringify(new URL("../src/index.ts", import.meta.url).href)};
const beat = defineJob({ name: "beat", run: ({ input, job }) => console.log("ran", job.schedule, input) });
const app = createEscapement({ store: "sqlite:app.db", jobs: [beat] });
app.on("error", ({ error }) => console.log("error", error.message));
await app.start();
console.log("ready");
`;

function yaml(key: string, input: string): string {
  return `schedules:\n  ${key}:\n    job: beat\n    every: 1s\n    input: ${input}\n`;
}

describe("schedules from a file", () => {
  test("they run, follow the file while the process runs, and a broken file changes nothing [K12]", async () => {
    const folder = newFolder();
    const file = join(folder, "escapement.schedules.yaml");
    writeFileSync(file, yaml("first", "one"));
    writeFileSync(join(folder, "main.ts"), program);
    const child = spawn(process.execPath, ["main.ts"], { cwd: folder });
    let output = "";
    child.stdout.on("data", (data) => {
      output += data;
    });
    const until = async (pattern: RegExp): Promise<void> => {
      while (!pattern.test(output)) await once(child.stdout, "data", { signal: AbortSignal.timeout(30_000) });
    };
    try {
      await until(/ran first one/);
      writeFileSync(file, "schedules: {");
      await until(/error .*cannot be read/);
      output = "";
      await until(/ran first one/);
      writeFileSync(file, yaml("second", "two"));
      await until(/ran second two/);
      output = "";
      await until(/(ran second two[\s\S]*){3}/);
      assert.doesNotMatch(output, /ran first/);
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("a file is checked as a whole, with its name and what is wrong", async () => {
    const path = join(newFolder(), "escapement.schedules.json");
    const cases: [unknown, RegExp][] = [
      [[], /expected `schedules:`/],
      [{ schedules: { a: { cron: "* * * * *" } } }, /expected a to have a job/],
      [{ schedules: {}, extra: 1 }, /unknown option "extra"/],
    ];
    for (const [content, message] of cases) {
      writeFileSync(path, JSON.stringify(content));
      await assert.rejects(readEntries(path), message);
    }
    writeFileSync(
      path,
      JSON.stringify({ schedules: { a: { job: "x", at: "2026-05-01T00:00:00Z", tags: ["t"] } } }),
    );
    assert.deepEqual(await readEntries(path), [
      {
        key: "a",
        job: "x",
        input: null,
        spec: { at: new Date("2026-05-01T00:00:00Z") },
        options: { tags: ["t"] },
      },
    ]);
  });

  test("a day that no calendar has is refused, however it is written", async () => {
    const path = join(newFolder(), "escapement.schedules.yaml");
    const cases: [string, string, RegExp][] = [
      [
        "",
        "at: 2027-02-31T18:00:00Z",
        /expected at of a to be a time such as .*, got "2027-02-31T18:00:00Z"/,
      ],
      ["", 'at: "2027-02-31"', /expected at of a .*, got "2027-02-31"/],
      ["", "at: !!timestamp 2027-02-31", /expected at of a .*, got "2027-02-31"/],
      ["%YAML 1.1\n---\n", "at: 2027-02-31", /expected at of a .*, got "2027-02-31"/],
      ["", "every: 1s, startAt: 2027-04-31", /expected startAt of a .*, got "2027-04-31"/],
      ["", "every: 1s, endAt: 2027", /expected endAt of a .*, got 2027/],
    ];
    for (const [head, when, message] of cases) {
      writeFileSync(path, `${head}schedules: { a: { job: beat, ${when} } }\n`);
      await assert.rejects(readEntries(path), message, when);
    }
    writeFileSync(path, "%YAML 1.1\n---\nschedules: { a: { job: beat, at: 2027-02-28 } }\n");
    const [entry] = await readEntries(path);
    assert.deepEqual(entry?.spec, { at: new Date("2027-02-28") });
  });
});
