import { addFigures, type HistoryFigures, historySteps, lateBoundsMs, noFigures } from "../../history.ts";
import { jobStates } from "../../job.ts";
import type { NewAuditEntry } from "../../store/audit.ts";
import type { ScanFilter } from "../../store/questions.ts";
import { type Operation, operation, pages } from "./operation.ts";
import { claimers, jobNames, queueNames, type World } from "./world.ts";

const hour = 3_600_000;

/** Texts of which some stand in the inputs, tags, reasons and errors of random jobs. */
const texts = ["a", "ERR", "no", "lease", "k1", "1", "parent", "\\", "%"] as const;

/** What those ask and write who look after the jobs. */
export function watchOperation(world: World): Operation {
  const { chance } = world;
  if (chance.oneIn(3)) return scanOperation(world);
  if (chance.oneIn(3)) {
    return operation(
      "depths",
      () => ({}),
      async (store) => (await store.depths()).queues,
    );
  }
  if (chance.oneIn(3)) {
    const params = { ids: chance.times(0, 3, () => world.id()), text: chance.pick(["one 🕰️", "two\nlines"]) };
    return operation(
      "note",
      () => params,
      (store) => store.note(params),
    );
  }
  if (chance.oneIn(2)) return chance.oneIn(3) ? historyOperation(world) : recordHistoryOperation(world);
  return chance.oneIn(2) ? recordOperation(world) : auditOperation(world);
}

/** How far a store looks in one call is its own; all calls together find the same. */
function scanOperation({ chance }: World): Operation {
  const states = chance.oneIn(2) ? chance.some(jobStates) : undefined;
  const spans = { ended: chance.oneIn(4), before: chance.oneIn(2) };
  const [error, text] = [chance.oneIn(4), chance.oneIn(3)].map((has) =>
    has ? chance.pick(texts) : undefined,
  );
  const filter = (at: (ms: number) => Date): ScanFilter => ({
    ...(states === undefined ? {} : { states }),
    ...(error === undefined ? {} : { error }),
    ...(text === undefined ? {} : { text }),
    ...(spans.ended ? { [spans.before ? "endedBefore" : "endedAfter"]: at(2 * hour) } : {}),
  });
  const by = chance.pick(["enqueued", "ended"] as const);
  const order = chance.pick(["newest", "oldest"] as const);
  const limit = chance.pick([1, 3, 100]);
  const lookAt = chance.pick([1, 5, 1_000]);
  return operation(
    "scan",
    (at) => ({ filter: filter(at), by, order, limit, lookAt }),
    async (store, params) => {
      const jobs = await pages(async (cursor) => {
        const page = await store.scan({ ...params, cursor });
        return { items: page.jobs, cursor: page.cursor };
      });
      // Ends that share an instant in one store may be an instant apart in the other.
      return by === "ended" ? jobs.toSorted((a, b) => (a.id < b.id ? -1 : 1)) : jobs;
    },
  );
}

const actors = ["ann", "bob"] as const;
const actions = ["cancel", "pause"] as const;

function recordOperation({ chance }: World): Operation {
  const entries = chance.times(
    0,
    3,
    (): NewAuditEntry => ({
      id: `e${chance.below(20)}`,
      actor: chance.pick(actors),
      action: chance.pick(actions),
      target: chance.pick(["job:1", "queue:q1"]),
      reason: chance.pick([null, "because"]),
      outcome: chance.pick([null, '{"cancelled":1}', '"done"']),
    }),
  );
  // Of one id in a batch, the first is written and the last has the word: a batch repeats none.
  const given = [...new Map(entries.map((entry) => [entry.id, entry])).values()];
  return operation(
    "record",
    () => ({ entries: given }),
    (store, params) => store.record(params),
  );
}

function auditOperation({ chance }: World): Operation {
  const filter = {
    ...(chance.oneIn(2) ? { actors: chance.some(actors) } : {}),
    ...(chance.oneIn(2) ? { actions: chance.some(actions) } : {}),
    ...(chance.oneIn(2) ? { targets: ["job:1"] } : {}),
  };
  const limit = chance.pick([1, 3, 100]);
  return operation(
    "audit",
    () => ({ filter, limit }),
    (store, params) =>
      pages(async (cursor) => {
        const page = await store.audit({ ...params, cursor });
        return { items: page.entries, cursor: page.cursor };
      }),
  );
}

/** Sequences of few nodes, in any order, so that some are repeated and some come late. */
function recordHistoryOperation({ chance }: World): Operation {
  const entries = chance.times(0, 4, () => ({
    ...noFigures,
    agoMs: chance.below(5) * hour,
    queue: chance.pick(queueNames),
    name: chance.oneIn(5) ? "" : chance.pick(jobNames),
    succeeded: chance.below(3),
    failed: chance.below(3),
    lateSumMs: chance.below(1_000_000),
    lateMaxMs: chance.below(1_000),
    runMaxMs: chance.below(1_000),
    dueMax: chance.below(100),
    late: [...lateBoundsMs, 0].map(() => chance.below(3)),
  }));
  const params = { node: chance.pick(claimers), sequence: 1 + chance.below(30), entries };
  return operation(
    "recordHistory",
    () => params,
    (store) => store.recordHistory(params),
  );
}

/** Where a step begins depends on when a run started, so of each group the sum over all steps is compared. */
function historyOperation({ chance }: World): Operation {
  const params = {
    step: chance.pick(historySteps),
    by: chance.pick(["queue", "name", null] as const),
    ...(chance.oneIn(3) ? { queue: chance.pick(queueNames) } : {}),
    ...(chance.oneIn(3) ? { name: chance.pick(jobNames) } : {}),
    limit: 100_000,
  };
  return operation(
    "history",
    (at) => ({ ...params, since: at(-1_000 * hour), until: at(100_000 * hour) }),
    async (store, asked) => {
      const sums: Record<string, HistoryFigures> = {};
      for (const { at: _, queue, name, ...figures } of (await store.history(asked)).points) {
        const group = queue ?? name ?? "";
        sums[group] = addFigures(sums[group] ?? noFigures, figures);
      }
      return sums;
    },
  );
}
