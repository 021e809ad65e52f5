import assert from "node:assert/strict";
import { test } from "node:test";
import { longestTimeMs, maxHistoryEntries } from "../history.ts";
import { entriesOf, HistoryTally } from "./history-tally.ts";

const minute = 60_000;

test("figures of a minute, queue and name add up, and are gone once taken", () => {
  const tally = new HistoryTally();
  tally.ended(minute, "q", "n", "succeeded", 10.4);
  tally.ended(minute + 59_999, "q", "n", "dead", 20);
  tally.ended(2 * minute, "q", "n", "lost", null);
  tally.dispatched(minute, "q", "n", 10);
  tally.dispatched(minute, "q", "n", 10.6);
  tally.dispatched(minute, "q", "n", -3);
  tally.happened(minute, "q", "n", "absorbed");
  tally.happened(minute, "q", "n", "absorbed");
  const [first, second, ...others] = entriesOf(tally.take(), 3 * minute);
  assert.deepEqual(others, []);
  assert.deepEqual(first, {
    agoMs: 1.5 * minute,
    queue: "q",
    name: "n",
    succeeded: 1,
    failed: 0,
    crashed: 0,
    dead: 1,
    lost: 0,
    cancelled: 0,
    existing: 0,
    absorbed: 2,
    stale: 0,
    namingRetries: 0,
    publishRetries: 0,
    rollbackRetries: 0,
    runs: 2,
    runSumMs: 30,
    runMaxMs: 20,
    lateSumMs: 21,
    lateMaxMs: 11,
    late: [2, 1, 0, 0, 0, 0, 0],
    dueMax: 0,
  });
  assert.deepEqual([second?.agoMs, second?.lost, second?.runs], [0.5 * minute, 1, 0]);
  assert(tally.isEmpty);
});

test("however many queues and names there are, and however long nobody takes them, the tally stays small and counts all of the last hour", () => {
  const tally = new HistoryTally();
  for (let at = 0; at < 100; at += 1)
    for (let n = 0; n < 50; n += 1) tally.ended(at * minute, `q${at}`, `n${n}`, "succeeded", null);
  const minutes = tally.take();
  assert.equal(minutes.length, 60);
  const entries = minutes.flatMap((one) => one.entries);
  assert(entries.length <= maxHistoryEntries + 60, `${entries.length} entries`);
  assert.equal(
    entries.reduce((sum, { succeeded }) => sum + succeeded, 0),
    60 * 50,
  );
  assert(entries.some(({ queue, name }) => queue === "(others)" && name === "(others)"));
});

test("a job that was due in another age does not make sums inexact", () => {
  const tally = new HistoryTally();
  tally.dispatched(0, "q", "n", Date.now());
  const [entry] = entriesOf(tally.take(), 0);
  assert.deepEqual([entry?.lateSumMs, entry?.late.at(-1)], [longestTimeMs, 1]);
});

test("the most that was due at once stays, for a queue and for all of them, with no name", () => {
  const tally = new HistoryTally();
  for (const due of [3, 7, 5]) {
    tally.waited(minute, "q", due);
    tally.waited(minute, "", due + 10);
  }
  assert.deepEqual(
    entriesOf(tally.take(), minute).map(({ queue, name, dueMax, succeeded }) => [
      queue,
      name,
      dueMax,
      succeeded,
    ]),
    [
      ["q", "", 7, 0],
      ["", "", 17, 0],
    ],
  );
});
