import { systemClock } from "../src/clock.ts";
import { createEscapement, defineJob, type Escapement, type JobDefinition } from "../src/index.ts";
import { silentLogger } from "../src/log.ts";
import { checkStates, Dispatches, within } from "./audit.ts";
import {
  compare,
  type Finding,
  interleave,
  type Plan,
  type Run,
  type Scenario,
  series,
  time,
} from "./scenario.ts";

const concurrency = 100;
const deadlineMs = 300_000;
const queues = 8;
const keys = 100;

interface Input {
  readonly n: number;
  readonly text?: string;
}

type Ran = (id: string) => void;

/** Jobs that ask more of a store than plain ones. */
interface Kind {
  readonly name: string;
  readonly what: string;
  readonly needsTransactions: boolean;
  /** Jobs of a run, of those of the plan: what is dear is measured with fewer. */
  readonly share: number;
  define(ran: Ran): readonly JobDefinition<Input, unknown>[];
  input(n: number): Input;
}

const plain: Kind = {
  name: "plain",
  what: "plain jobs",
  needsTransactions: false,
  share: 1,
  define: (ran) => [defineJob<Input>({ name: "plain", run: ({ job }) => ran(job.id) })],
  input: (n) => ({ n }),
};

const kinds: readonly Kind[] = [
  {
    ...plain,
    name: "tx",
    what: "effectively-once, each with a tx of its own that does nothing but end the job",
    needsTransactions: true,
    share: 0.25,
    define: (ran) => [
      defineJob<Input>({
        name: "tx",
        delivery: "effectively-once",
        run: async ({ job, tx }) => {
          ran(job.id);
          await tx(() => {});
        },
      }),
    ],
  },
  {
    ...plain,
    name: "keyed",
    what: `${keys} concurrency keys, two jobs of each at a time`,
    define: (ran) => [
      defineJob<Input>({
        name: "keyed",
        concurrency: { key: ({ n }) => String(n % keys), limit: 2 },
        run: ({ job }) => ran(job.id),
      }),
    ],
  },
  {
    ...plain,
    name: "large",
    what: "inputs of 10 kB",
    share: 0.25,
    input: (n) => ({ n, text: "x".repeat(10_000) }),
  },
  {
    ...plain,
    name: "queues",
    what: `${queues} queues with a name each`,
    define: (ran) =>
      Array.from({ length: queues }, (_, n) =>
        defineJob<Input>({ name: `job-${n}`, queue: `queue-${n}`, run: ({ job }) => ran(job.id) }),
      ),
  },
];

/** What keys, transactions, large inputs and many queues cost, beside as many plain jobs in the same run. */
export const jobKinds: Scenario = {
  name: "kinds",
  async run(plan) {
    const findings: Finding[] = [];
    for (const kind of kinds) {
      if (kind.needsTransactions && !(await hasTransactions(plan))) continue;
      const jobs = Math.ceil(plan.jobs * kind.share);
      const { ours, raw } = await interleave(plan, {
        ours: () => drainKind(plan, kind, jobs),
        raw: () => drainKind(plan, plain, jobs),
      });
      findings.push(
        compare({
          scenario: `kinds: ${kind.name}`,
          what: `${jobs} jobs, concurrency ${concurrency}, ${kind.what}`,
          unit: "jobs/s",
          ours: series(kind.name, ours),
          base: series("plain jobs", raw),
          goal: { ratio: 0.5, is: "at least" },
        }),
      );
    }
    return findings;
  },
};

async function hasTransactions({ bed, durability }: Plan): Promise<boolean> {
  await using place = await bed.open(durability);
  const store = await place.store.open({ namespace: "default", clock: systemClock, log: silentLogger });
  await store.close();
  return store.capabilities.transactions;
}

async function drainKind({ bed, durability }: Plan, kind: Kind, jobs: number): Promise<Run> {
  await using place = await bed.open(durability);
  const dispatches = new Dispatches();
  const definitions = kind.define((id) => dispatches.add(id));
  await using app: Escapement = createEscapement({ store: place.store, jobs: definitions, concurrency });
  for (const { queue } of definitions) await app.pauseQueue(queue);
  await app.start();
  const ids: string[] = [];
  for (const [index, definition] of definitions.entries()) {
    const inputs: { readonly input: Input }[] = [];
    for (let n = index; n < jobs; n += definitions.length) inputs.push({ input: kind.input(n) });
    ids.push(...(await app.enqueueMany(definition, inputs)).map(({ id }) => id));
  }
  let written = 0;
  const last = Promise.withResolvers<void>();
  app.on("succeeded", () => {
    written += 1;
    if (written === jobs) last.resolve();
  });
  const { ms, cpuMs } = await time(async () => {
    for (const { queue } of definitions) await app.resumeQueue(queue);
    await within(deadlineMs, "the drain", last.promise);
  });
  dispatches.check(ids);
  await checkStates(app, { succeeded: jobs });
  return { value: (jobs / ms) * 1_000, ms, cpuMs };
}
