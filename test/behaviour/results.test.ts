import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob, type HandlerContext } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { onEveryStore } from "./stores.ts";

const values: Readonly<Record<string, { value: unknown; says: RegExp }>> = {
  bigint: { value: { total: 10n }, says: /result not kept: it cannot be written as JSON \(.*BigInt/ },
  large: { value: "x".repeat(2_000_000), says: /2,000,002 bytes of JSON, 1,048,576 are allowed/ },
  map: { value: { byDay: new Map([["mon", 1]]) }, says: /JSON would lose a Map at "byDay"/ },
  average: { value: { avg: 0 / 0 }, says: /JSON would lose NaN at "avg"/ },
  promise: { value: [Promise.resolve(1)], says: /JSON would lose a Promise at "0"/ },
  function: { value: () => {}, says: /a function cannot be written as JSON/ },
};

function warnings() {
  const lines: string[] = [];
  return { lines, log: { ...silentLogger, warn: (_facts: object, line: string) => void lines.push(line) } };
}

onEveryStore("results", (bed) => {
  for (const way of ["returned", "from tx"] as const) {
    const skip = way === "from tx" && bed.noTransactions;
    test(`a result that cannot be kept is told, ${way}`, { skip }, async () => {
      const job = defineJob({
        name: "job",
        run: ({ input, tx }: HandlerContext<string>): unknown => {
          const value = values[input]?.value;
          return way === "returned" ? value : tx(() => value);
        },
      });
      const { lines, log } = warnings();
      await using app = await bed.app({ jobs: [job], log });
      for (const [kind, { says }] of Object.entries(values)) {
        const receipt = await app.enqueue(job, kind, { id: kind });
        await app.runUntilIdle();
        const kept = await app.get(receipt);
        assert.deepEqual([kept?.state, kept?.result], ["succeeded", null]);
        assert.match(kept?.reason ?? "", says);
        assert.deepEqual(
          (await app.trail(receipt)).map((line) => line.kind),
          ["result-not-kept"],
        );
        await assert.rejects(app.result(receipt), { code: "result-not-kept", message: says });
        assert.equal(lines.filter((line) => line.includes(`"${kind}"`) && says.test(line)).length, 1);
      }
    });
  }

  test("no result is no loss", async () => {
    const job = defineJob({ name: "job", run: () => {} });
    const { lines, log } = warnings();
    await using app = await bed.app({ jobs: [job], log });
    const receipt = await app.enqueue(job);
    await app.runUntilIdle();
    assert.equal(await app.result(receipt), null);
    assert.deepEqual([(await app.get(receipt))?.reason, await app.trail(receipt)], [null, []]);
    assert.deepEqual(lines, []);
  });

  test("result that waits when the app stops says at once that it was stopped", async () => {
    const job = defineJob<null>({ name: "job" });
    await using app = await bed.app({ jobs: [job] });
    const receipt = await app.enqueue(job, null);
    const result = assert.rejects(app.result(receipt), { code: "stopped", message: /^this app was stopped/ });
    await app.advance("2s");
    await app.stop();
    await result;
  });

  test("without a timeout, result waits for five minutes", async () => {
    const job = defineJob<null>({ name: "job", run: () => 1 });
    await using app = await bed.app({ jobs: [job] });
    const soon = app.result(await app.enqueue(job, null, { delay: "290s" }));
    const late = assert.rejects(app.result(await app.enqueue(job, null, { delay: "1h" })), {
      code: "result-timeout",
      message: /still waiting after 300000 ms/,
    });
    await app.advance("6m");
    assert.equal(await soon, 1);
    await late;
  });
});
