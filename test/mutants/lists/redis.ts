import { concernsOn, type Mutant, mutantsOf, namedIsOwn } from "../mutant.ts";

const tests = ["src/stores/redis/redis.test.ts"];
const at = (file: string, concerns: string) => ({
  file: `src/stores/redis/lua/${file}`,
  tests,
  pattern: concernsOn("on a single server", concerns),
});

export const redis: readonly Mutant[] = [
  ...mutantsOf(at("shared/holder.lua", "finish|stale|step|checkpoint"), [
    ["a claim's end minds no token", "and job[TOKEN] == token and", "and"],
    [
      "a claim's end minds no claimer",
      "job[TOKEN] == token and job[CLAIMER] == claimer",
      "job[TOKEN] == token",
    ],
  ]),
  ...mutantsOf(at("shared/finish.lua", "finish|stale|step|checkpoint"), [
    ["a fast success minds no token", "if not after or after.token ~= token then", "if not after then"],
    ["a fast success minds no claimer", "special == 0 and holder == claimer and", "special == 0 and"],
  ]),
  ...mutantsOf(at("shared/settle.lua", "finish|stale|step|checkpoint"), [
    [
      "another's repeated finish is taken for one's own",
      "and (rareOf(job).settledBy or job[CLAIMER]) == claimer",
      "",
    ],
    ["a worker ends what the relay has named", "return job[RELAYED] == 0", "return true"],
    ["at-most-once is sent back", 'and not decideFor(job, kind, "") then', "and false then"],
  ]),
  ...mutantsOf(at("shared/claim.lua", "claims ahead"), [
    ["at-most-once is claimed ahead", "if isAhead and mark >= ONCE then break end", ""],
    ["a claim ahead is not marked", "\n    isAhead and 1 or 0,", "\n    0,"],
  ]),
  ...mutantsOf(at("shared/policy.lua", "policy"), [
    ["the last crash is one later", "if maxCrashes - crashes <= 1 then", "if maxCrashes - crashes <= 0 then"],
  ]),
  ...mutantsOf(at("reap.lua", "claims ahead"), [
    ["a claim ahead that runs out is a crash", "silenceOf(job[AHEAD] == 1)", "silenceOf(false)"],
  ]),
  ...mutantsOf(at("shared/keyed.lua", "claim|step|limits|fragile|finish|expire"), [
    [
      "a claim counts no attempt",
      "job[STATE], job[ATTEMPT] = ACTIVE, job[ATTEMPT] + 1",
      "job[STATE] = ACTIVE",
    ],
    [
      "the limit of a queue is not counted",
      "if left then left[tailOf(job)[QUEUE]] = left[tailOf(job)[QUEUE]] - 1 end",
      "",
    ],
    ["fragile jobs run beside others", "if ask.limit <= 0 or not ask.alone then", "if ask.limit <= 0 then"],
    [
      "expired jobs are claimed",
      'job[STATE] ~= WAITING or isExpired(job) then return "skip"',
      'job[STATE] ~= WAITING then return "skip"',
    ],
  ]),
  ...mutantsOf(at("fire.lua", "fire|schedules"), [
    ["a fire minds no version", " and schedule.version == version", ""],
    ["a fire minds no nextAt", " and schedule.nextAt == nextAt", ""],
    ["a paused schedule fires", " and (schedule.paused == 0 or replaceSkipped)", ""],
    [
      "an occurrence is planned twice",
      "if not mayWrite(key, one.fireAt, replaceSkipped) then return false end",
      "",
    ],
  ]),
  ...mutantsOf(at("shared/partition.lua", "checkpoint|partitions"), [
    [
      "an owner's old epoch is as good as its new one",
      "and partition[EPOCH] == epoch and partition",
      "and partition",
    ],
    ["a checkpoint minds no owner", "and partition[OWNER] == owner and", "and"],
  ]),
  ...mutantsOf(at("checkpoint.lua", "checkpoint|partitions"), [
    [
      "another's named job is answered again",
      "return job[CLAIMER] == owner end",
      "return true end",
      { equivalent: namedIsOwn },
    ],
    ["a checkpoint names what is not due", "or job[RUNAT] > fast.dueBy or", "or"],
    ["a checkpoint names what was edited", "and tailOf(job)[VERSION] == one[2] and", "and"],
  ]),
  ...mutantsOf(at("shared/relay.lua", "checkpoint|partitions"), [
    ["a fast checkpoint settles under any token", "or held ~= token or", "or"],
    ["a fast checkpoint names what is not due", "or runAt > fast.dueBy or", "or"],
    ["a fast checkpoint names what was edited", "or tail[VERSION] ~= version then", "then"],
    [
      "a fast naming keeps the token",
      "attempt + 1, token + 1, settled, now",
      "attempt + 1, token, settled, now",
    ],
  ]),
];
