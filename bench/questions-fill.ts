import { systemClock } from "../src/clock.ts";
import { silentLogger } from "../src/log.ts";
import type { Outcome } from "../src/state.ts";
import type { Finish } from "../src/store/claims.ts";
import type { NewJob } from "../src/store/jobs.ts";
import type { StoreFactory } from "../src/store/opening.ts";
import { slotCount } from "../src/store/partitions.ts";
import type { Store } from "../src/store/store.ts";

const batch = 1_000;
const hourMs = 3_600_000;

/** What is in the store, so that the questions can ask for it. */
const queues = ["default", "mail", "reports", "billing"] as const;
const names = ["import", "invoice", "notify", "export", "index", "sync"] as const;
export const tag = "customer-7";

/** Puts N waiting and N ended jobs there by the store's own verbs, so what it keeps beside them is right. */
export async function fill(
  factory: StoreFactory,
  jobs: number,
  progress: (line: string) => void,
): Promise<void> {
  const store = await factory.open({ namespace: "default", clock: systemClock, log: silentLogger });
  try {
    await store.migrate();
    await enqueue(store, jobs, (n) => jobOf("ended", n, 0), progress);
    await endAll(store, progress);
    // Half of what waits is due.
    await enqueue(store, jobs, (n) => jobOf("waiting", n, n % 2 === 0 ? 0 : hourMs + n), progress);
  } finally {
    await store.close();
  }
}

async function enqueue(
  store: Store,
  jobs: number,
  make: (n: number) => NewJob,
  progress: (line: string) => void,
): Promise<void> {
  for (let start = 0; start < jobs; start += batch) {
    const size = Math.min(batch, jobs - start);
    await store.enqueue({ jobs: Array.from({ length: size }, (_, n) => make(start + n)) });
    if ((start / batch) % 100 === 99) progress(`${start + size} enqueued`);
  }
}

async function endAll(store: Store, progress: (line: string) => void): Promise<void> {
  let finishes: Finish[] = [];
  let ended = 0;
  for (let sequence = 1; ; sequence += 1) {
    const { claimed } = await store.step({
      finishes,
      claim: {
        claimer: "filler",
        sequence,
        leaseMs: hourMs,
        limit: batch,
        queues: null,
        names: names.map((name) => ({ name, concurrency: null, rate: null })),
        alone: false,
      },
    });
    finishes = claimed.jobs.map(({ id, token }) => ({ id, token, outcome: outcomeOf(id) }));
    if (finishes.length === 0) break;
    ended += finishes.length;
    // As every node that works does.
    if (sequence % 10 === 0) await store.reap({ limit: batch });
    if (sequence % 100 === 0) progress(`${ended} ended`);
  }
  await store.reap({ limit: batch });
}

/** One in fifty dies, of one of five causes. */
function outcomeOf(id: string): Outcome {
  const n = Number(id.slice(id.indexOf("-") + 1));
  if (n % 50 !== 0) return { kind: "succeed", result: '{"ok":true}' };
  const message = `cause ${(n / 50) % 5}: the peer ${n} did not answer`;
  const error = JSON.stringify({
    name: "Error",
    message,
    stack: `Error: ${message}\n    at run (job.js:1:1)`,
  });
  return { kind: "die", reason: "no attempts left", error };
}

function jobOf(kind: string, n: number, delayMs: number): NewJob {
  return {
    id: `${kind}-${String(n).padStart(9, "0")}`,
    name: names[n % names.length] ?? "import",
    queue: queues[n % queues.length] ?? "default",
    delivery: "at-least-once",
    input: JSON.stringify({ n, customer: n % 1_000, note: n % 10_000 === 0 ? "needle" : "hay" }),
    priority: 0,
    tags: n % 1_000 === 7 ? [tag] : [],
    runAt: null,
    delayMs,
    expireInMs: null,
    attempts: 5,
    maxCrashes: 3,
    after: [],
    afterFailure: "cancel",
    unique: null,
    debounce: null,
    concurrencyKey: null,
    rateKey: null,
    retention: null,
    relayed: false,
    slot: n % slotCount,
    schedule: null,
    fireAt: null,
  };
}
