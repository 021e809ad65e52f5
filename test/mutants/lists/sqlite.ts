import { posix } from "node:path";
import { concernsOn, type Mutant, mutantsOf, namedIsOwn } from "../mutant.ts";

const tests = ["src/stores/sqlite/sqlite.test.ts"];
const at = (file: string, concerns: string) => ({
  file: posix.join("src/stores/sqlite", file),
  tests,
  pattern: concernsOn("sqlite in a file", concerns),
});

export const sqlite: readonly Mutant[] = [
  ...mutantsOf(at("claim.ts", "claim order|claim repeated|step|limits of queues|fragile"), [
    [
      "a claim of an earlier sequence is answered",
      "if (last !== null && params.sequence < last)",
      "if (false)",
    ],
    ["a repeated claim takes more", "if (params.sequence === last)", "if (false)"],
    [
      "a repeated claim brings back what has no lease left",
      "and lease_boot = ? and lease_until > ?",
      "and lease_boot = ? and ? is not null",
    ],
    [
      "a repeated claim brings back other claims",
      "and claimer = ? and claim_sequence = ?",
      "and claimer = ? and ? is not null",
    ],
    ["a claim is not remembered", "rememberSequence(session, params, taken.length > 0);", ""],
  ]),
  ...mutantsOf(at("../choose.ts", "claim order|claims ahead|limits of keys"), [
    ["what may not be claimed ahead is", "if (job.direct || limits.isLimited(job.queue)) return false;", ""],
    ["a job overtakes the one before it in its lane", "waitingLanes.add(job.lane)", "waitingLanes.size"],
    ["a claim takes more of a queue than it asked for", "left.set(job.queue, leftInQueue - 1)", ""],
  ]),
  ...mutantsOf(at("jobs/hold.ts", "claim order|claims ahead|step|fragile|limits of keys"), [
    ["a claim does not raise the token", '${risen("min", "token")}, ?, ?, ?, ?', "token, ?, ?, ?, ?"],
    ["a claim ahead is not marked", "ahead ? 1 : 0", "0"],
    ["a claimed job stays on its shelf", "set shelf = null", "set shelf = shelf"],
  ]),
  ...mutantsOf(at("finish.ts", "finish|stale|step"), [
    [
      "a finish minds no token",
      "job.token === token && job.claimer === claimer && mine(job)",
      "job.claimer === claimer && mine(job)",
    ],
    [
      "a finish minds no claimer",
      "job.token === token && job.claimer === claimer && mine(job)",
      "job.token === token && mine(job)",
    ],
    ["another's repeated finish is taken for one's own", "&& job.settledBy === claimer", ""],
    ["a claim is finished twice in one call", "active.delete(id);", ""],
  ]),
  ...mutantsOf(at("schedules.ts", "fire|schedules"), [
    ["a fire minds no version", "and version = ? and next_at is ?", "and ? is not null and next_at is ?"],
    ["a fire minds no nextAt", "and next_at is ? and (paused", "and coalesce(?, 0) is not null and (paused"],
    ["a paused schedule fires", "and (paused = 0 or ?)", "and (true or ?)"],
    [
      "a backfill plans what was planned",
      '!(replaceSkipped && known["fate"] === "skipped")',
      "!replaceSkipped",
    ],
  ]),
  ...mutantsOf(at("partitions.ts", "checkpoint|partitions"), [
    [
      "an owner's old epoch is as good as its new one",
      "where ns = ? and partition = ? and epoch = ? and owner = ?`,\n    ns,\n    ref.partition",
      "where ns = ? and partition = ? and ? > 0 and owner = ?`,\n    ns,\n    ref.partition",
    ],
    [
      "a renewal minds no epoch",
      "where ns = ? and partition = ? and epoch = ? and owner = ?`,\n      boot",
      "where ns = ? and partition = ? and ? > 0 and owner = ?`,\n      boot",
    ],
    [
      "a takeover keeps the token",
      'claimed_at = ?, token = ${risen("min", "token")} where',
      "claimed_at = ? where",
    ],
    ["a checkpoint names what was edited", "where version = wanted ->> 1 and", "where"],
    [
      "another's named job is answered again",
      "then active.claimer = ?",
      "then ? is not null",
      { equivalent: namedIsOwn },
    ],
    [
      "a checkpoint names what is not due",
      "is 'relay' and run_at <= ? and",
      "is 'relay' and ? is not null and",
    ],
  ]),
];
