import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import type { Store } from "../../store/store.ts";
import type { ConformanceHarness } from "../conformance/harness.ts";
import { claimsAtOnce, comparable, visibleState, withoutNextAt } from "./answers.ts";
import {
  claimOperation,
  extendOperation,
  finishOperation,
  reportOperation,
  stepOperation,
  transactOperation,
} from "./claim-operations.ts";
import {
  enqueueOperation,
  pruneOperation,
  questionOperation,
  reapOperation,
  reapUntilOperation,
  selectOperation,
  updateOperation,
  usageOperation,
} from "./job-operations.ts";
import { type Operation, operation } from "./operation.ts";
import {
  acquireOperation,
  checkpointOperation,
  holdOperation,
  partitionDueOperation,
} from "./partition-operations.ts";
import { fireOperation, nodeOperation, queueOperation, scheduleOperation } from "./schedule-operations.ts";
import { type At, maxRealMs, stepMs } from "./time.ts";
import { watchOperation } from "./watch-operations.ts";
import { World } from "./world.ts";

export interface CompareOptions {
  /** The same seed gives the same operations. */
  readonly seed: number;
  readonly operations: number;
  /** The first is the specification: normally `memory`. */
  readonly open: readonly [() => Promise<ConformanceHarness>, () => Promise<ConformanceHarness>];
}

/** How often the whole visible state is compared, in operations. */
const checkEvery = 25;

/** A store under comparison, with its own time at the start. */
interface Side {
  readonly harness: ConformanceHarness;
  readonly store: Store;
  readonly base: Date;
  readonly at: At;
}

/**
 * Makes the same random operations on two stores and compares every answer, and now and then everything that can be
 * seen. A difference is thrown with the seed, the number of the operation and both answers.
 */
export async function compareStores({ seed, operations, open }: CompareOptions): Promise<void> {
  const [first, second] = [await openSide(open[0]), await openSide(open[1])];
  const world = new World(seed, first.store);
  const startedAt = performance.now();
  try {
    for (let index = 0; index < operations; index += 1) {
      const tooLong = performance.now() - startedAt > maxRealMs;
      assert(
        !tooLong,
        `seed ${seed} took over ${maxRealMs} ms; use fewer operations, a flowing clock blurs the rest`,
      );
      await compareAnswers(world, { seed, index }, first, second);
      if (index % checkEvery === checkEvery - 1 || index === operations - 1) {
        await compareStates({ seed, index }, first, second);
      }
    }
  } finally {
    for (const { store, harness } of [first, second]) {
      await store.close();
      await harness.close();
    }
  }
}

async function openSide(open: () => Promise<ConformanceHarness>): Promise<Side> {
  const harness = await open();
  const store = await harness.open("random");
  const { now: base } = await store.health();
  return { harness, store, base, at: (ms) => new Date(base.getTime() + ms) };
}

/** Weighted by how often the verb stands here. */
async function randomOperation(world: World, first: Side, second: Side): Promise<Operation> {
  const haveTransactions = [first, second].every(({ store }) => store.capabilities.transactions);
  const choices: [() => Operation | Promise<Operation>, number][] = [
    [() => enqueueOperation(world), 14],
    [() => claimOperation(world), 10],
    [() => stepOperation(world), 5],
    [() => finishOperation(world), 8],
    [() => extendOperation(world), 3],
    [() => reportOperation(world), 2],
    [() => transactOperation(world), haveTransactions ? 3 : 0],
    [() => updateOperation(world), 3],
    [() => selectOperation(world, "cancel"), 2],
    [() => selectOperation(world, "redrive"), 4],
    [() => selectOperation(world, "remove"), 1],
    [() => reapOperation(world), 3],
    [() => reapUntilOperation(world), 1],
    [() => pruneOperation(world), 2],
    [() => questionOperation(world), 4],
    [() => usageOperation(world), 3],
    [() => watchOperation(world), 5],
    [() => queueOperation(world), 2],
    [() => nodeOperation(world), 1],
    [() => scheduleOperation(world, first.base.getTime()), 3],
    [() => fireOperation(world, first.base.getTime()), 3],
    [() => acquireOperation(world), 2],
    [() => holdOperation(world), 1],
    [() => partitionDueOperation(world), 1],
    [() => checkpointOperation(world), 4],
  ];
  let draw = world.chance.below(choices.reduce((sum, [, weight]) => sum + weight, 0));
  for (const [make, weight] of choices) {
    if (draw < weight) return make();
    draw -= weight;
  }
  return operation(
    "nothing",
    () => null,
    async () => null,
  );
}

async function compareAnswers(
  world: World,
  where: { seed: number; index: number },
  first: Side,
  second: Side,
): Promise<void> {
  const ms = stepMs * (world.chance.oneIn(15) ? 1 + world.chance.below(30) : 1);
  world.nowMs += ms;
  for (const side of [first, second]) await side.harness.advance(ms);
  const made = await randomOperation(world, first, second);
  const answers = [await answerOf(made, first), await answerOf(made, second)] as const;
  const told = [first, second].map(({ base }, n) => comparable(made.verb, withoutNextAt(answers[n]), base));
  const agree =
    isDeepStrictEqual(told[0], told[1]) && (!claimsAtOnce(answers[0]) || claimsAtOnce(answers[1]));
  if (!agree)
    report(where, `${made.verb} ${JSON.stringify(made.asked(first.at))}`, answers[0], answers[1], told);
}

/** What the store answered, or that it refused; the words of a refusal are its own. */
async function answerOf(made: Operation, side: Side): Promise<unknown> {
  try {
    return await made.run(side.store, side.at);
  } catch {
    return "rejected";
  }
}

async function compareStates(
  where: { seed: number; index: number },
  first: Side,
  second: Side,
): Promise<void> {
  const [one, two] = [await visibleState(first.store, first.at), await visibleState(second.store, second.at)];
  for (const part of Object.keys(one)) {
    const told = [comparable(part, one[part], first.base), comparable(part, two[part], second.base)];
    if (!isDeepStrictEqual(told[0], told[1]))
      report(where, `the visible state: ${part}`, one[part], two[part], told);
  }
}

function report(
  { seed, index }: { seed: number; index: number },
  what: string,
  first: unknown,
  second: unknown,
  told: readonly unknown[],
): never {
  const error = new assert.AssertionError({
    message:
      `seed ${seed}, operation ${index}: the stores differ on ${what}\n` +
      `first:  ${JSON.stringify(first)}\nsecond: ${JSON.stringify(second)}\n` +
      `replay with ESCAPEMENT_SEED=${seed}`,
    actual: told[1],
    expected: told[0],
    operator: "deepStrictEqual",
  });
  throw error;
}

/**
 * The seed to replay, from ESCAPEMENT_SEED, or the first few and one that is new in every run. ESCAPEMENT_SEEDS says how many of them
 * are enough.
 */
export function seedsToRun(count: number): number[] {
  const asked = process.env["ESCAPEMENT_SEED"];
  if (asked !== undefined) return [Number(asked)];
  const length = Math.min(count, Number(process.env["ESCAPEMENT_SEEDS"] ?? count));
  return [...Array.from({ length }, (_, n) => n + 1), Math.floor(Math.random() * 1_000_000_000)];
}
