import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { createEscapement, defineJob } from "../src/index.ts";
import { silentLogger } from "../src/log.ts";
import { escapement } from "./command.ts";
import { scratchFolder } from "./scratch.ts";
import { noTerminal, onTerminal, plainText } from "./terminal.ts";

const failing = defineJob<null>({
  name: "send-the-weekly-newsletter",
  queue: "outgoing-mail",
  retry: { attempts: 1 },
  run: () => Promise.reject(new RangeError("the mailbox is full, and has been for a week")),
});

describe("what a person copies stays whole on a narrow terminal [K12]", { skip: noTerminal }, () => {
  const folder = scratchFolder("narrow");
  const store = `sqlite:${join(folder, "app.db")}`;
  const ids: string[] = [];
  let next = "";
  before(async () => {
    await using app = createEscapement({ store, jobs: [failing], log: silentLogger });
    await app.start();
    const receipts = await app.enqueueMany(
      failing,
      Array.from({ length: 3 }, () => ({ input: null })),
    );
    ids.push(...receipts.map(({ id }) => id));
    await Promise.all(receipts.map((receipt) => assert.rejects(app.result(receipt))));
    await app.schedule(
      "the-newsletter",
      { cron: "0 3 * * mon-fri", timezone: "Europe/Berlin" },
      failing,
      null,
    );
    await app.pauseSchedule("the-newsletter");
    next = (await app.getSchedule("the-newsletter"))?.nextAt?.toISOString() ?? "";
  });

  async function linesOf(columns: number, ...args: string[]): Promise<string[]> {
    const { output } = await onTerminal(folder, [...args, "--store", store], { columns });
    return plainText(output).split("\n");
  }

  for (const columns of [45, 70, 80]) {
    test(`${columns} columns`, async () => {
      const jobs = await linesOf(columns, "jobs", "ls");
      for (const id of ids) assert(jobs.join("\n").includes(id), `${id} in ${jobs.join("\n")}`);
      const schedules = await linesOf(columns, "schedules", "ls");
      assert.match(schedules[1] ?? "", new RegExp(`^the-newsletter .*${next}`));
      const dead = await linesOf(columns, "dead");
      const [group] = JSON.parse(
        `[${(await escapement(folder, "dead", "--json", "--store", store)).stdout}]`,
      );
      assert(dead[1]?.includes(group.fingerprint), dead[1]);
      for (const line of [...jobs, ...dead, ...schedules]) {
        assert.doesNotMatch(line, /…[\w-]/, "no beginning is cut off");
        if (!line.startsWith("redrive a group:")) assert(line.length <= columns, line);
      }
    });
  }

  test("what says most stays beside it", async () => {
    const [headings = "", row = ""] = await linesOf(70, "jobs", "ls", "--state", "dead");
    assert.match(headings, /^id +job +state *$/);
    assert.match(row, /^\S{36} +send-the.* dead +RangeErr/);
    const [groups = ""] = await linesOf(70, "dead");
    assert.match(groups, /^count +job +last +fingerprint +what went wrong *$/);
  });

  test("a wide one has every column", async () => {
    const [headings = "", row = ""] = await linesOf(160, "dead");
    assert.match(headings, /^count +job +last +fingerprint +such as +what went wrong *$/);
    assert(
      ids.some((id) => row.includes(id)),
      row,
    );
  });
});
