import { concernsOn, type Mutant, mutantsOf, namedIsOwn } from "../mutant.ts";

const tests = ["src/stores/mysql/mysql.test.ts"];
const at = (file: string, concerns: string) => ({
  file: `src/stores/mysql/${file}`,
  tests,
  pattern: concernsOn("mysql with SKIP LOCKED", concerns),
});

export const mysql: readonly Mutant[] = [
  ...mutantsOf(at("claim.ts", "claim order|claim repeated|step|limits of queues|fragile"), [
    ["a claim of an earlier sequence is answered", "if (params.sequence < last) return", "if (false) return"],
    ["a repeated claim takes more", "const again = params.sequence === last;", "const again = false;"],
    ["a repeated claim brings back what has no lease left", "and at > ${now} and claimer", "and claimer"],
    [
      "a repeated claim brings back other claims",
      "claimer = ${claimer} and claim_sequence = ${sequence}",
      "claimer = ${claimer} and ${sequence} > 0",
    ],
  ]),
  ...mutantsOf(at("fast/claim.ts", "claim order|claim repeated|step"), [
    [
      "a fast claim minds no sequence",
      "@escapement_last < ${params.sequence}",
      "@escapement_last < ${params.sequence} + 1000",
    ],
  ]),
  ...mutantsOf(at("fast/finish.ts", "finish|stale|step|after"), [
    ["a fast finish minds no token", "? sql`token = ${token}`", "? sql`token >= 0`"],
    [
      "a fast finish minds no claimer",
      "state = 'active' and claimer = ${claimer} and ${kind}",
      "state = 'active' and ${claimer} > 0 and ${kind}",
    ],
    ["a fast finish forgets children", "and @escapement_children = 0", ""],
  ]),
  ...mutantsOf(at("finish.ts", "finish|stale|step"), [
    [
      "a finish minds no token",
      "job.token === token && job.claimer === claimer;",
      "job.claimer === claimer;",
    ],
    ["a finish minds no claimer", "job.token === token && job.claimer === claimer;", "job.token === token;"],
    ["another's repeated finish is taken for one's own", "&& job.settledBy === claimer", ""],
  ]),
  ...mutantsOf(at("schedules.ts", "fire|schedules"), [
    ["a fire minds no version", "schedule.version === one.version &&", ""],
    [
      "a fire minds no nextAt",
      "(schedule.nextAt?.getTime() ?? null) === (one.nextAt?.getTime() ?? null)",
      "true",
    ],
    ["a paused schedule fires", "(!schedule.paused || one.replaceSkipped) &&", ""],
  ]),
  ...mutantsOf(at("partitions.ts", "checkpoint|partitions"), [
    [
      "an owner's old epoch is as good as its new one",
      "and epoch = ${epoch} and owner = ${owner}",
      "and ${epoch} > 0 and owner = ${owner}",
    ],
    [
      "a checkpoint minds no owner",
      "and epoch = ${epoch} and owner = ${owner}",
      "and epoch = ${epoch} and ${owner} <> ''",
    ],
    [
      "a takeover keeps the token",
      'claimed_at = ${now}, token = ${fixed(risen("least", "token"))} where',
      "claimed_at = ${now} where",
    ],
    ["a checkpoint names what was edited", "|| job.version !== version) return []", ") return []"],
    [
      "another's named job is answered again",
      'job.state !== "active" || job.claimer !== owner',
      'job.state !== "active"',
      { equivalent: namedIsOwn },
    ],
    ["a checkpoint names what is not due", "&& job.runAt <= at + aheadMs", ""],
  ]),
  ...mutantsOf(at("fast/checkpoint.ts", "checkpoint|partitions"), [
    ["a fast checkpoint names what is not due", "and j.run_at <= ${now} + ${Math.trunc(aheadMs)}", ""],
    [
      "a fast checkpoint answers another's named job",
      "and j.state = 'active' and j.claimer = ${claimer}`",
      "and j.state = 'active'`",
      { equivalent: namedIsOwn },
    ],
  ]),
];
