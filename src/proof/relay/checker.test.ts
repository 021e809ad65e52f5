import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { FaultWindow } from "../history.ts";
import { enqueued, fault, run } from "../test/hand-made.ts";
import type { RelayLine } from "./evidence.ts";
import { brokenBy, copy, granted, judge, published, routed } from "./test/hand-made.ts";

const twice = { copies: [copy("j", 1), copy("j", 2)], final: { token: 2 } };

describe("a history of published jobs that keeps every promise is valid", () => {
  test("one message for each job", () => {
    const verdict = judge(
      routed("a", "at-most-once"),
      routed("b", "at-least-once"),
      routed("c", "effectively-once"),
    );
    assert.deepEqual(verdict.violations, []);
    assert.deepEqual(
      verdict.figures.map(({ jobs, dispatches, reruns, effects }) => [jobs, dispatches, reruns, effects]),
      [
        [1, 1, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 0, 1],
      ],
    );
  });

  test("a kill explains a second message, and the takeover is measured", () => {
    const relay = [
      ...published("j", 1, 50, { settled: null }),
      ...published("j", 2, 1_200, { node: "2.2", epoch: 2 }),
    ];
    const verdict = judge(
      routed("j", "at-least-once", { ...twice, relay, faults: [fault("kill", "1.1", 65)] }),
    );
    assert.deepEqual(verdict.violations, []);
    assert.deepEqual(verdict.reruns, { count: 1, bound: 4 });
    assert.equal(verdict.recovery.maxMs, 1_135);
  });

  test("one that was named and not published when its relay died is taken over as well", () => {
    const name = published("j", 1, 50).filter(({ what }) => what === "name");
    const at = (atMs: number) =>
      judge(
        routed("j", "at-least-once", {
          relay: [...name, ...published("j", 2, atMs, { node: "2.2", epoch: 2 })],
          copies: [copy("j", 2)],
          final: { token: 2 },
          faults: [fault("kill", "1.1", 45)],
        }),
      );
    assert.deepEqual(at(1_200).violations, []);
    assert.equal(at(1_200).recovery.count, 1);
    assert.deepEqual(
      at(4_000).violations.map(({ kind }) => kind),
      ["slow"],
    );
  });

  test("one that was given back by a relay which died before it could say so stands in line, and waits for the broker", () => {
    const name = published("j", 1, 50).filter(({ what }) => what === "name");
    const at = (grantedAtMs: number, ...more: FaultWindow[]) =>
      judge(
        routed("j", "at-least-once", {
          relay: [
            ...name,
            granted(2, grantedAtMs, "2.2"),
            ...published("j", 2, 9_000, { node: "2.2", epoch: 2 }),
          ],
          copies: [copy("j", 2)],
          final: { token: 2 },
          faults: [fault("kill", "1.1", 45), ...more],
        }),
      ).violations.map(({ kind }) => kind);
    const outage = fault("broker-restart", null, 500, 8_500);
    assert.deepEqual(at(1_200, outage), []);
    assert.deepEqual(at(1_200), ["slow"], "the broker was there");
    assert.deepEqual(at(8_985, outage), ["slow"], "it came with its partition");
  });

  test("who was held up hears late that it might have published, and is not waited for", () => {
    const [name] = published("j", 1, 50);
    assert.ok(name?.what === "name");
    const late = { ...name, atMs: 3_000 };
    const stale: RelayLine = {
      ...{ what: "settle", node: "1.1", job: "j", token: 1, atMs: 3_100 },
      ...{ outcome: "release", written: false },
    };
    const relay = [
      ...[late, stale],
      ...published("j", 2, 1_200, { node: "2.2", epoch: 2, how: "refused", drilled: true }),
      ...published("j", 3, 9_000, { node: "2.2", epoch: 2 }),
    ];
    const faults = [fault("pause", "1.1", 35, 2_990), fault("kill", "1.1", 3_200)];
    const parts = { relay, faults, copies: [copy("j", 3)], final: { token: 3, rollbacks: 1 } };
    assert.deepEqual(brokenBy(routed("j", "at-least-once", parts)), []);
  });

  test("a publish that ran out of the time that it was given is nobody's fault", () => {
    const unsure = published("j", 1, 50, { how: "ambiguous" });
    const given = (timeoutMs: number) =>
      brokenBy(
        routed("j", "at-least-once", {
          ...twice,
          relay: [
            ...unsure.map((line) => (line.what === "publish" ? { ...line, timeoutMs } : line)),
            ...published("j", 2, 1_200),
          ],
          final: { token: 2, rollbacks: 1 },
        }),
      );
    assert.deepEqual([given(10), given(500)], [[], ["duplicated"]]);
  });

  test("a relay that was blocked between naming and publishing gives it up, and counts that as one rollback [D3]", () => {
    const refused = published("j", 1, 50, { how: "refused" });
    const late = refused
      .filter(({ what }) => what !== "publish" && what !== "answer")
      .map((line) => (line.what === "name" ? line : { ...line, atMs: 2_010 }));
    const parts = {
      relay: [...late, ...published("j", 2, 3_000)],
      copies: [copy("j", 2)],
      final: { token: 2, rollbacks: 1 },
    };
    const faults = [fault("block", "1.1", 45, 2_005)];
    assert.deepEqual(brokenBy(routed("j", "at-least-once", { ...parts, faults })), []);
    assert.deepEqual(brokenBy(routed("j", "at-least-once", parts)), ["rollback"]);
  });

  test("a refusal costs one rollback, no attempt and no message [D3]", () => {
    const relay = [...published("j", 1, 50, { how: "refused", drilled: true }), ...published("j", 2, 1_100)];
    const parts = { relay, copies: [copy("j", 2)], final: { token: 2, rollbacks: 1 } };
    const verdict = judge(routed("j", "at-least-once", parts));
    assert.deepEqual(verdict.violations, []);
    assert.deepEqual(verdict.relay?.rollbacks, { refused: 1, ambiguous: 0, failed: 0 });
  });

  test("at-most-once ends dead when it was refused, lost when nobody knows", () => {
    const refused = published("j", 1, 50, { how: "refused", drilled: true, settled: "die", told: false });
    const dead = { relay: refused, copies: [], lines: [], final: { state: "dead" as const } };
    assert.deepEqual(brokenBy(routed("j", "at-most-once", dead)), []);
    const unsure = published("j", 1, 50, { how: "ambiguous", drilled: true, settled: "lose", told: false });
    const lost = { relay: unsure, final: { state: "lost" as const } };
    assert.deepEqual(brokenBy(routed("j", "at-most-once", lost)), []);
  });
});

describe("each broken promise of a relay is called by its name", () => {
  test("lost: succeeded, and the broker does not have it", () => {
    const gone = { copies: [], lines: [] };
    assert.deepEqual(brokenBy(routed("j", "at-least-once", gone)), ["lost"]);
    assert.deepEqual(brokenBy(routed("j", "at-least-once", { ...gone, relay: [] })), ["lost"]);
  });

  test("lost: the broker has it, and no consumer handled it", () => {
    assert.deepEqual(brokenBy(routed("j", "at-least-once", { lines: [] })), ["lost"]);
    assert.deepEqual(brokenBy(routed("j", "effectively-once", { effects: [] })), ["lost"]);
    const killed = { lines: [], faults: [fault("kill", "c1.1", 60)] };
    assert.deepEqual(brokenBy(routed("j", "at-most-once", killed)), [], "it is not begun again");
    assert.deepEqual(brokenBy(routed("j", "at-least-once", killed)), ["lost"]);
  });

  test("lost: a receiver died with it in hand, and nobody published it again; unless it was cancelled meanwhile", () => {
    const cancel = { kind: "cancel", job: "j", invokedAtMs: 80, endedAtMs: 90, outcome: "ok" } as const;
    const parts = (kept: boolean) => ({
      operations: [enqueued("j", "at-least-once"), { ...cancel, answer: "cancelled" } as const],
      relay: published("j", 1, 50, { how: "ambiguous" }),
      faults: [fault("broker-restart", null, 45, 70)],
      copies: [copy("j", 1, { kept })],
      lines: [],
      effects: [],
      final: { state: "cancelled" as const, rollbacks: 1 },
    });
    for (const delivery of ["at-least-once", "effectively-once"] as const) {
      assert.deepEqual(brokenBy(routed("j", delivery, parts(false))), []);
      assert.deepEqual(brokenBy(routed("j", delivery, parts(true))), ["lost"]);
      const operations = [enqueued("j", delivery)];
      const ended = { ...parts(false), operations, final: { rollbacks: 1 } };
      assert.deepEqual(brokenBy(routed("j", delivery, ended)), ["lost"]);
    }
  });

  test("lost: given up without a reason, or though it is at-least-once", () => {
    const unsure = published("j", 1, 50, { how: "ambiguous", settled: "lose", told: false });
    const lost = { relay: unsure, final: { state: "lost" as const } };
    assert.deepEqual(brokenBy(routed("j", "at-most-once", lost)), ["lost"]);
    const cut = { ...lost, faults: [fault("broker", null, 40, 60)] };
    assert.deepEqual(brokenBy(routed("j", "at-most-once", cut)), []);
    const dead = { ...lost, final: { state: "dead" as const }, faults: [fault("broker", null, 40, 60)] };
    assert.deepEqual(brokenBy(routed("j", "at-most-once", dead)), ["lost"], "it was not refused");
    const refused = published("j", 1, 50, { how: "refused", drilled: true, settled: null, told: false });
    const unwritten = { relay: refused, copies: [], lines: [], final: { state: "lost" as const } };
    assert.deepEqual(brokenBy(routed("j", "at-most-once", unwritten)), ["lost"]);
    const killed = { ...unwritten, faults: [fault("kill", "1.1", 65)] };
    assert.deepEqual(
      brokenBy(routed("j", "at-most-once", killed)),
      [],
      "nobody could tell that it was refused",
    );
    const told = published("j", 1, 50, { how: "ambiguous", drilled: true });
    const given = { relay: told, final: { state: "lost" as const, rollbacks: 1 } };
    assert.deepEqual(brokenBy(routed("j", "at-least-once", given)), ["lost"]);
  });

  test("stuck: it still waits at the end", () => {
    const waiting = { relay: [], copies: [], lines: [], final: { state: "waiting" as const } };
    assert.deepEqual(brokenBy(routed("j", "at-least-once", waiting)), ["stuck"]);
  });

  test("duplicated: a second message without a fault, after a success, or at all for at-most-once", () => {
    const again = [...published("j", 1, 50, { settled: null }), ...published("j", 2, 1_200)];
    assert.deepEqual(brokenBy(routed("j", "at-least-once", { ...twice, relay: again })), ["duplicated"]);
    const elsewhere = { ...twice, relay: again, faults: [fault("broker", null, 40, 1_000)] };
    assert.deepEqual(
      brokenBy(routed("j", "at-least-once", elsewhere)),
      ["duplicated"],
      "it was acknowledged",
    );
    const faults = [fault("kill", "1.1", 65)];
    const done = [...published("j", 1, 50), ...published("j", 2, 1_200, { node: "2.2" })];
    assert.deepEqual(brokenBy(routed("j", "at-least-once", { ...twice, relay: done, faults })), [
      "duplicated",
    ]);
    const once = { ...twice, relay: again, faults };
    assert.deepEqual(brokenBy(routed("j", "at-most-once", once)), ["duplicated"]);
    const unsure = [...published("j", 1, 50, { how: "ambiguous" }), ...published("j", 2, 1_200)];
    const parts = { ...twice, relay: unsure, final: { token: 2, rollbacks: 1 } };
    assert.deepEqual(brokenBy(routed("j", "at-least-once", parts)), ["duplicated"]);
    const cut = { ...parts, faults: [fault("broker", null, 40, 60)] };
    assert.deepEqual(brokenBy(routed("j", "at-least-once", cut)), []);
  });

  test("duplicated: the broker has what it refused, or one message twice", () => {
    const refused = [...published("j", 1, 50, { how: "refused" }), ...published("j", 2, 1_200)];
    const parts = { ...twice, relay: refused, final: { token: 2, rollbacks: 1 } };
    assert.ok(brokenBy(routed("j", "at-least-once", parts)).includes("duplicated"));
    const same = { copies: [copy("j", 1), copy("j", 1)] };
    assert.ok(brokenBy(routed("j", "at-least-once", same)).includes("duplicated"));
  });

  test("duplicated: more messages than all faults together can have cost", () => {
    const parts = Array.from({ length: 5 }, (_, index) => {
      const id = `j${index}`;
      const relay = [
        ...published(id, 1, 50, { settled: null }),
        ...published(id, 2, 1_200, { node: "2.2", epoch: 2 }),
      ];
      return routed(id, "at-least-once", { relay, copies: [copy(id, 1), copy(id, 2)], final: { token: 2 } });
    });
    assert.deepEqual(brokenBy(...parts, { faults: [fault("kill", "1.1", 65)] }), ["duplicated"]);
  });

  test("duplicated: two effects of one job, two starts of an at-most-once job", () => {
    const effects = [
      { job: "j", token: 1 },
      { job: "j", token: 1 },
    ];
    assert.deepEqual(brokenBy(routed("j", "effectively-once", { effects })), ["duplicated"]);
    const lines = [...run("j", 1, 80, { node: "c1.1" }), ...run("j", 1, 200, { node: "c2.2" })];
    assert.deepEqual(brokenBy(routed("j", "at-most-once", { lines })), ["duplicated"]);
    assert.deepEqual(brokenBy(routed("j", "at-least-once", { lines })), []);
  });

  test("phantom: published without being named, or asked for by nobody", () => {
    const relay = published("j", 1, 50, { named: false });
    assert.deepEqual(brokenBy(routed("j", "at-least-once", { relay })), ["phantom"]);
    assert.deepEqual(brokenBy({ copies: [copy("k", 1)] }), ["phantom"]);
    const unknown = { copies: [copy("j", 1), copy("j", 9)] };
    assert.ok(brokenBy(routed("j", "at-least-once", unknown)).includes("phantom"));
  });

  test("early: published before its time", () => {
    const operations = [enqueued("j", "at-least-once", { delayMs: 1_000 })];
    assert.deepEqual(brokenBy(routed("j", "at-least-once", { operations })), ["early"]);
  });

  test("cancelled-ran: published after its cancel was confirmed", () => {
    const call = { kind: "cancel", job: "j", invokedAtMs: 21, endedAtMs: 25, outcome: "ok" } as const;
    const operations = [enqueued("j", "at-least-once"), { ...call, answer: "cancelled" } as const];
    const cancelled = { operations, final: { state: "cancelled" as const, token: 0 } };
    assert.deepEqual(brokenBy(routed("j", "at-least-once", cancelled)), ["cancelled-ran"]);
    const kept = { ...cancelled, relay: [], copies: [], lines: [] };
    assert.deepEqual(brokenBy(routed("j", "at-least-once", kept)), []);
  });

  test("token: one is published twice though nothing kept its rollback from being written", () => {
    const relay = [
      ...published("j", 1, 50, { how: "refused", drilled: true, settled: null }),
      ...published("j", 1, 700).filter(({ what }) => what !== "name"),
    ];
    assert.deepEqual(brokenBy(routed("j", "at-least-once", { relay })), ["token"]);
  });

  test("epoch: a relay that has lost its partition names nothing, and publishes only what it was stopped at", () => {
    const stale = (atMs: number): RelayLine[] => [
      granted(1, 5, "1.1"),
      granted(2, 2_000, "2.2"),
      ...published("j", 1, 50, { settled: null }).map((line) => ({ ...line, atMs: line.atMs + atMs - 50 })),
    ];
    const published2 = (atMs: number, untilMs: number) =>
      brokenBy(
        routed("j", "at-least-once", {
          relay: stale(atMs),
          faults: [fault("pause", "1.1", 45, untilMs)],
        }),
      );
    assert.deepEqual(published2(3_000, 2_990), []);
    assert.deepEqual(published2(3_000, 2_500), ["epoch"]);
    const named = [granted(2, 10, "2.2"), ...published("j", 1, 50)];
    assert.deepEqual(
      brokenBy(routed("j", "at-least-once", { relay: named, faults: [fault("pause", "1.1", 5, 45)] })),
      ["epoch"],
    );
  });

  test("rollback: it cost a try, was not told of, or is not what the store counts [D3]", () => {
    const failed = { how: "refused", drilled: true } as const;
    const told = [...published("j", 1, 50, failed), ...published("j", 2, 1_100)];
    const parts = { relay: told, copies: [copy("j", 2)], final: { token: 2, rollbacks: 1 } };
    const tried = [...published("j", 1, 50, failed), ...published("j", 2, 1_100, { attempt: 2 })];
    assert.deepEqual(brokenBy(routed("j", "at-least-once", { ...parts, relay: tried })), ["rollback"]);
    const kept = { ...parts, final: { token: 2, rollbacks: 1, attempt: 2 } };
    assert.deepEqual(brokenBy(routed("j", "at-least-once", kept)), ["rollback"]);
    const silent = [...published("j", 1, 50, { ...failed, told: false }), ...published("j", 2, 1_100)];
    assert.deepEqual(brokenBy(routed("j", "at-least-once", { ...parts, relay: silent })), ["rollback"]);
    for (const rollbacks of [0, 2]) {
      const counted = { ...parts, final: { token: 2, rollbacks } };
      assert.deepEqual(brokenBy(routed("j", "at-least-once", counted)), ["rollback"]);
    }
  });

  test("a rollback that could not be written is told of, and its job published once its time is up [D4, D5]", () => {
    const drill = {
      what: "drill",
      node: "1.1",
      atMs: 65,
      phase: "rollback_write",
      jobs: [{ job: "j", token: 1 }],
      done: false,
    } as const;
    const retry = { ...drill, what: "retry", job: "j", token: 1, ambiguous: false, atMs: 66 } as const;
    const again = (atMs: number, ...lines: RelayLine[]) =>
      brokenBy(
        routed("j", "at-least-once", {
          relay: [
            ...published("j", 1, 50, { how: "refused", drilled: true, settled: null }),
            ...published("j", 1, atMs).filter(({ what }) => what !== "name"),
            ...lines,
          ],
        }),
      );
    assert.deepEqual(again(600, drill, retry), []);
    assert.deepEqual(again(6_000, drill, retry), ["slow"]);
    assert.deepEqual(again(600, drill), ["rollback", "token"]);
    // One that was stopped comes to it after another has taken over.
    const late = [drill, retry].map((line) => ({ ...line, atMs: line.atMs + 3_000 }));
    const takenOver = routed("j", "at-least-once", {
      faults: [{ kind: "pause", node: "1.1", fromMs: 55, untilMs: 3_060, detail: "" }],
      relay: [
        ...published("j", 1, 50, { how: "refused", drilled: true, settled: null }),
        ...published("j", 2, 2_000, { node: "2.2", epoch: 2 }),
        ...late,
      ],
    });
    assert(!brokenBy(takenOver).includes("slow"));
    const cancel = { kind: "cancel", job: "j", invokedAtMs: 55, endedAtMs: 60, outcome: "ok" } as const;
    const cancelled = routed("j", "at-least-once", {
      operations: [enqueued("j", "at-least-once"), { ...cancel, answer: "requested" }],
      relay: [...published("j", 1, 50, { how: "refused", drilled: true, settled: null }), ...[drill, retry]],
      final: { state: "cancelled", attempt: 0 },
      copies: [],
      lines: [],
    });
    assert.deepEqual(brokenBy(cancelled), [], "who is cancelled meanwhile is not published again");
  });
});
