import assert from "node:assert/strict";
import { test } from "node:test";
import { noFigures } from "../history.ts";
import { RateMeter } from "./rates.ts";

const now = new Date("2026-11-15T10:30:20Z");
const ended = (succeeded: number, dead: number) => ({
  now,
  counts: [
    { state: "succeeded" as const, count: succeeded },
    { state: "dead" as const, count: dead },
  ],
  queues: [],
});

test("rates begin with the kept minutes, without the one that is not over, and go on with what is seen", () => {
  const meter = new RateMeter();
  const at = (text: string) => new Date(`2026-11-15T${text}:00Z`);
  meter.begin(
    [
      { ...noFigures, at: at("08:00"), succeeded: 1_000 },
      { ...noFigures, at: at("09:30"), succeeded: 60 },
      { ...noFigures, at: at("10:29"), succeeded: 120, dead: 6, lost: 6 },
      { ...noFigures, at: at("10:30"), succeeded: 999 },
    ],
    now,
  );
  const { succeeded, failed } = meter.add(ended(100, 5));
  assert.equal(succeeded.length, 60);
  assert.deepEqual([succeeded[0], succeeded[1], succeeded.at(-1)], [1, 0, 2]);
  assert.deepEqual([failed[0], failed.at(-1)], [0, 0.2]);
  const next = meter.add({ ...ended(110, 5), now: new Date(now.getTime() + 2_000) });
  assert.deepEqual(next.succeeded.slice(-2), [2, 5]);
  assert.equal(next.succeeded.length, 60);
});

test("where nothing was kept, rates begin with the second look", () => {
  const meter = new RateMeter();
  meter.begin([], now);
  assert.deepEqual(meter.add(ended(1, 1)).succeeded, []);
});
