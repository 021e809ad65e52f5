import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Occurrence } from "../../dashboard/src/api/answers.ts";
import {
  byDay,
  dayLines,
  daysOf,
  hourLines,
  isDense,
  momentsOf,
  mondayOf,
} from "../../dashboard/src/screens/ledger-grid.ts";
import { addDays, isDay, localTime, startOfDay } from "../../dashboard/src/screens/ledger-time.ts";

function ran(fireAt: string, more: Partial<Occurrence> = {}): Occurrence {
  return {
    key: "k",
    fireAt,
    until: null,
    count: 1,
    fate: "succeeded",
    reason: null,
    jobId: `job-${fireAt}`,
    attempt: 1,
    plannedAt: fireAt,
    claimedAt: fireAt,
    finishedAt: fireAt,
    lateMs: 0,
    plannedBy: "n",
    node: "n",
    ...more,
  };
}

/** Where the occurrences of a line stand: `hour.part`. */
function placesOf(line: ReturnType<typeof dayLines>[number] | undefined): string[] {
  return (line?.groups ?? []).flatMap((group, hour) =>
    group.flatMap(({ moments }, part) => moments.map(() => `${hour}.${part}`)),
  );
}

describe("the axis of the ledger", () => {
  test("each occurrence stands at its hour, whatever else was there on its day", () => {
    const moments = momentsOf([ran("2026-11-03T20:00:00Z"), ran("2026-11-04T00:00:00Z")]);
    const [later, earlier] = dayLines(moments, daysOf("2026-11-03", "2026-11-04"), "UTC");
    assert.deepEqual([later?.day, placesOf(later)], ["2026-11-04", ["0.0"]]);
    assert.deepEqual([earlier?.day, placesOf(earlier)], ["2026-11-03", ["20.0"]]);
  });

  test("quarters of an hour keep their places where one is missing", () => {
    const at = (time: string) => ran(`2026-11-03T${time}:00Z`);
    const moments = momentsOf(["10:00", "10:15", "10:30", "10:45", "11:30"].map(at));
    const [line] = dayLines(moments, ["2026-11-03"], "UTC");
    assert.deepEqual(placesOf(line), ["10.0", "10.1", "10.2", "10.3", "11.2"]);
  });

  test("a zone's own clocks decide, also on the days when they change", () => {
    const zone = "Europe/Berlin";
    const moments = momentsOf(
      ["2026-10-24T22:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"].map((at) => ran(at)),
    );
    const [line] = dayLines(moments, ["2026-10-25"], zone);
    assert.deepEqual(placesOf(line), ["0.0", "2.0", "2.0"], "02:30 came twice");
    assert.equal(new Date(startOfDay("2026-10-25", zone)).toISOString(), "2026-10-24T22:00:00.000Z");
    assert.equal(startOfDay("2026-10-26", zone) - startOfDay("2026-10-25", zone), 25 * 3_600_000);
    assert.equal(startOfDay("2026-03-30", zone) - startOfDay("2026-03-29", zone), 23 * 3_600_000);
    assert.deepEqual(localTime(Date.parse("2026-07-01T23:59:00Z"), zone), {
      day: "2026-07-02",
      hour: 1,
      minute: 59,
    });
    assert.equal(localTime(0, "Mars/Olympus").day, "1970-01-01", "an unknown zone is UTC");
  });

  test("a skipped range counts at each of its times, over midnight too", () => {
    const range = ran("2026-11-03T22:00:00Z", {
      until: "2026-11-04T01:00:00Z",
      count: 4,
      fate: "skipped",
      reason: "paused",
      jobId: null,
    });
    const [later, earlier] = dayLines(momentsOf([range]), ["2026-11-03", "2026-11-04"], "UTC");
    assert.deepEqual(
      [placesOf(earlier), placesOf(later)],
      [
        ["22.0", "23.0"],
        ["0.0", "1.0"],
      ],
    );
    const long = { ...range, until: "2026-12-03T22:00:00Z", count: 864_001 };
    const total = momentsOf([long]).reduce((sum, { many }) => sum + many, 0);
    assert.equal(total, 864_001, "of a long one none is left out");
  });

  test("more than four an hour are one cell; a day of them has a line for each hour", () => {
    const start = Date.parse("2026-11-03T10:00:00Z");
    const moments = momentsOf(
      Array.from({ length: 1_200 }, (_, n) =>
        ran(new Date(start + n * 3_000).toISOString(), n === 700 ? { fate: "dead" } : {}),
      ),
    );
    assert.equal(isDense(moments), true);
    const [line] = dayLines(moments, ["2026-11-03"], "UTC");
    const [slot] = line?.groups[10] ?? [];
    assert.equal(slot?.moments.length, 1_200);
    const hours = hourLines(moments, "2026-11-03", "UTC");
    assert.deepEqual(
      hours.map(({ hour }) => hour),
      [10],
      "nothing was due in the others",
    );
    const minutes = hours[0]?.groups.flat() ?? [];
    assert.deepEqual([minutes.length, minutes[35]?.moments.length], [60, 20]);
    assert.equal(minutes[35]?.moments[0]?.of.fate, "dead", "700 × 3 s is minute 35");
  });

  test("days and weeks of the calendar", () => {
    assert.equal(mondayOf("2026-11-18"), "2026-11-16");
    assert.equal(mondayOf("2026-11-16"), "2026-11-16");
    assert.equal(addDays("2026-03-01", -1), "2026-02-28");
    assert.deepEqual(["2026-02-30", "2026-2-3", "", null, "2026-11-18"].map(isDay), [
      ...[false, false, false, false],
      true,
    ]);
    const days = byDay(momentsOf([ran("2026-11-03T23:30:00Z")]), "Europe/Berlin");
    assert.deepEqual([...days.keys()], ["2026-11-04"]);
  });
});
