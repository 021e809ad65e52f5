import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../clock.ts";
import { enqueueChunk, writeInChunks } from "./chunks.ts";

const items = Array.from({ length: 3 * enqueueChunk }, (_, n) => n);

/** Notes what happens; a chunk is written when it is told to. */
function scene() {
  const story: string[] = [];
  const ends: PromiseWithResolvers<void>[] = [];
  const write = async (part: readonly number[], follows: Promise<number> | undefined): Promise<number> => {
    const first = part[0] as number;
    story.push(`prepared ${first}`);
    await follows;
    story.push(`sent ${first}`);
    const end = Promise.withResolvers<void>();
    ends.push(end);
    await end.promise;
    return first;
  };
  return { story, ends, write };
}

async function turns(): Promise<void> {
  for (let n = 0; n < 10; n += 1) await new Promise((resolve) => setImmediate(resolve));
}

test("a chunk is prepared while the one before it is written, and sent before that one is settled", async () => {
  const { story, ends, write } = scene();
  const writing = writeInChunks(systemClock, items, write, async ({ start, written }) => {
    await written;
    story.push(`settled ${start}`);
  });
  for (let n = 0; n < 3; n += 1) {
    await turns();
    story.push("written");
    ends[n]?.resolve();
  }
  await writing;
  assert.deepEqual(story, [
    ...["prepared 0", "sent 0", "prepared 1000", "written", "sent 1000", "settled 0", "prepared 2000"],
    ...["written", "sent 2000", "settled 1000", "written", "settled 2000"],
  ]);
});

test("nothing is sent behind a chunk that failed", async () => {
  const { story, ends, write } = scene();
  const writing = writeInChunks(systemClock, items, write, async ({ start, written }) => {
    await written;
    story.push(`settled ${start}`);
  });
  await turns();
  ends[0]?.resolve();
  await turns();
  ends[1]?.reject(new Error("no answer"));
  await assert.rejects(writing, /no answer/);
  await turns();
  assert.deepEqual(
    story.filter((line) => !line.startsWith("prepared")),
    ["sent 0", "sent 1000", "settled 0"],
  );
});
