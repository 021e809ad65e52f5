import { concernsOn, type Mutant, mutantsOf, namedIsOwn } from "../mutant.ts";

const tests = ["src/stores/postgres/postgres.test.ts"];
const at = (file: string, concerns: string) => ({
  file: `src/stores/postgres/functions/${file}`,
  tests,
  pattern: concernsOn("on Postgres", concerns),
});

export const postgres: readonly Mutant[] = [
  ...mutantsOf(at("10-claim.sql", "claim order|claim repeated|step|limits of queues"), [
    [
      "a claim of an earlier sequence is answered",
      "then 'repeated' else 'stale' end",
      "then 'repeated' else 'new' end",
    ],
    ["a repeated claim takes more", "v_last then 'repeated' else", "v_last then 'new' else"],
    [
      "a repeated claim brings back what has no lease left",
      "\n        and lease_until > a.now offset 0",
      " offset 0",
    ],
    [
      "a repeated claim brings back what another holds",
      "and claimer = a.claimer and claim_sequence = a.sequence",
      "",
    ],
  ]),
  ...mutantsOf(at("05-finish.sql", "finish|stale|step"), [
    ["a success minds no token", "x.seq = a.seq and x.token = a.token and", "x.seq = a.seq and"],
    [
      "a success minds no claimer",
      "x.token = a.token and x.claimer = p_claimer\n      and case",
      "x.token = a.token\n      and case",
    ],
    [
      "a finish minds no token",
      "v_job.state = 'active' and v_job.token = p_tokens[i] and",
      "v_job.state = 'active' and",
    ],
    [
      "a finish minds no claimer",
      "v_job.token = p_tokens[i] and v_job.claimer = p_claimer and",
      "v_job.token = p_tokens[i] and",
    ],
    [
      "another's repeated finish is taken for one's own",
      "v_settled = p_token and v_by = p_claimer",
      "v_settled = p_token",
    ],
    ["at-most-once is sent back", "and is_refused(v_job, a.kind)", "and false"],
  ]),
  ...mutantsOf(at("00-policy.sql", "policy|fragile"), [
    [
      "the last crash is one later",
      "if p_max_crashes - p_crashes <= 1 then",
      "if p_max_crashes - p_crashes <= 0 then",
    ],
    [
      "fragile jobs are none",
      "p_crashes > 0 and p_max_crashes - p_crashes <= 1 then true",
      "false then true",
    ],
  ]),
  ...mutantsOf(at("13-schedules.sql", "fire|schedules"), [
    ["a fire minds no version", "and version = v_fire.version", ""],
    ["a fire minds no nextAt", "and next_at is not distinct from v_fire.next_at", ""],
    ["a paused schedule fires", "\n      and (not paused or v_fire.replace_skipped)", ""],
    ["a backfill plans what was planned", "where p_replace and o.fate = 'skipped';", "where p_replace;"],
  ]),
  ...mutantsOf(at("14-partitions.sql", "checkpoint|partitions"), [
    [
      "an owner's old epoch is as good as its new one",
      "and partition = p_partition and epoch = p_epoch and owner = p_owner for update",
      "and partition = p_partition and owner = p_owner for update",
    ],
    [
      "a checkpoint minds no owner",
      "and epoch = p_epoch and owner = p_owner for update",
      "and epoch = p_epoch for update",
    ],
    ["a takeover keeps the token", "claimed_at = v_now, token = risen(token)\n", "claimed_at = v_now\n"],
    ["a checkpoint names what was edited", "where j.version = n.version and", "where"],
    [
      "another's named job is answered again",
      "then j.claimer = p_owner",
      "then true",
      { equivalent: namedIsOwn },
    ],
    ["a checkpoint names what is not due", "and j.run_at <= v_now + p_ahead_ms and", "and"],
  ]),
];
