import { concernsOn, type Mutant, mutantsOf, namedIsOwn } from "../mutant.ts";

const tests = ["src/stores/memory/memory.test.ts"];
const at = (file: string, concerns: string) => ({
  file: `src/stores/memory/${file}`,
  tests,
  pattern: concernsOn("memory", concerns),
});

export const memory: readonly Mutant[] = [
  ...mutantsOf(at("claim.ts", "claim order|claim repeated|step|limits of queues|fragile"), [
    ["a claim of an earlier sequence is answered", "params.sequence < last.sequence", "false"],
    ["a repeated claim takes more", "if (params.sequence === last?.sequence)", "if (false)"],
    [
      "a repeated claim brings back a job under another token",
      "row.token !== token ||",
      "",
      {
        equivalent:
          "only a later claim of the same claimer gives it another token, and then this one is stale",
      },
    ],
    [
      "a repeated claim brings back what has no lease left",
      "row.leaseUntil > moment.monotonic ? [row] : []",
      "true ? [row] : []",
    ],
    ["a claim does not raise the token", "token: row.token + 1,", "token: row.token,"],
    ["a claim counts no attempt", "attempt: row.attempt + 1,", "attempt: row.attempt,"],
    ["the limit of a queue is not counted", "left.set(row.queue, leftInQueue - 1);", ""],
    ["fragile jobs run beside others", "params.alone && params.limit > 0", "params.limit > 0"],
  ]),
  ...mutantsOf(at("finish.ts", "finish|stale|step|checkpoint"), [
    [
      "a finish minds no token",
      'row.state === "active" && row.token === token &&',
      'row.state === "active" &&',
    ],
    ["a finish minds no claimer", "row.token === token && row.claimer === claimer;", "row.token === token;"],
    ["a repeated finish is stale", "row.finished?.token === token &&", "false &&"],
    ["another's repeated finish is taken for one's own", "&& row.finished.claimer === claimer", ""],
    ["a worker ends what the relay has named", "(row) => !row.relayed)", "() => true)"],
    [
      "a refused outcome leaves the others written",
      "isHeldBy(row, claimer, token)) settle(row, outcome);",
      "isHeldBy(row, claimer, token)) void outcome;",
    ],
  ]),
  ...mutantsOf(at("schedules.ts", "fire|schedules"), [
    ["a fire minds no version", "schedule.version === params.version &&", ""],
    [
      "a fire minds no nextAt",
      "(schedule.nextAt?.getTime() ?? null) === (params.nextAt?.getTime() ?? null);",
      "true;",
    ],
    ["a paused schedule fires", "(!schedule.paused || params.replaceSkipped) &&", ""],
    [
      "an occurrence is planned twice",
      'if (known !== undefined && !(replaceSkipped && known.fate === "skipped")) return null;',
      "",
    ],
    ["a backfill plans what was planned", 'replaceSkipped && known.fate === "skipped"', "replaceSkipped"],
    ["skipped occurrences count as fired", "schedule.fired + planned.length", "schedule.fired + rows.length"],
  ]),
  ...mutantsOf(at("partitions.ts", "checkpoint|partitions"), [
    [
      "an owner's old epoch is as good as its new one",
      "&& partition.epoch === ref.epoch ? partition",
      "? partition",
    ],
    [
      "a checkpoint minds no owner",
      "partition?.owner === owner && partition.epoch",
      "partition !== undefined && partition.epoch",
    ],
    [
      "a takeover keeps the token",
      "claimedAt: moment.now, token: row.token + 1 }",
      "claimedAt: moment.now, token: row.token }",
    ],
    ["a checkpoint names what was edited", "|| row.version !== version) return []", ") return []"],
    ["a checkpoint names what is not due", "row.runAt > now + aheadMs ||", ""],
    [
      "another's named job is answered again",
      'if (row.state === "active") return row.claimer === owner;',
      'if (row.state === "active") return true;',
      { equivalent: namedIsOwn },
    ],
    ["a checkpoint settles other partitions' jobs", "row.relayed && isIn(row, partition);", "row.relayed;"],
    ["a grant keeps the epoch", "const epoch = old.epoch + 1;", "const epoch = old.epoch;"],
  ]),
];
