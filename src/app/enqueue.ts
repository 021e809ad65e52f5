import type { Client } from "../client/client.ts";
import { readMany } from "../client/many.ts";
import type { AnyDefinition } from "../definition.ts";
import type { EnqueueOptions, EnqueueVerbs, JobsForHandlers } from "../enqueue.ts";
import type { Emit } from "../events.ts";
import type { EnqueueReceipt, JobRef } from "../receipt.ts";

/** The verbs by which an app's callers enqueue; `check` refuses before anything is made. */
export function enqueueVerbs(client: Client, emit: Emit, check: () => void): EnqueueVerbs {
  const enqueue = async (target: AnyDefinition | string, input?: unknown, options: EnqueueOptions = {}) => {
    check();
    const receipt = await client.enqueue(target, input, options);
    tell(emit, receipt, target);
    return receipt;
  };
  const enqueueMany = async (first: unknown, second?: unknown, third?: unknown) => {
    check();
    const many = readMany(first, second, third);
    const receipts = await client.enqueueMany(many);
    for (const [index, receipt] of receipts.entries()) tell(emit, receipt, many.asked[index]?.target ?? "");
    return receipts;
  };
  // The overloads say what goes with what; here it is all the same.
  return { enqueue, enqueueMany } as EnqueueVerbs;
}

/** What handlers may ask. They may still do so while the app is stopping: it waits for them. */
export function jobsForHandlers(client: Client, emit: Emit): JobsForHandlers {
  return {
    ...enqueueVerbs(client, emit, () => {}),
    get: ((job: JobRef) => client.get(job)) as JobsForHandlers["get"],
    within: (write) => client.enqueuer(write, (receipt, target) => tell(emit, receipt, target)),
  };
}

function tell(emit: Emit, receipt: EnqueueReceipt, target: AnyDefinition | string): void {
  emit("enqueued", { ...receipt, name: typeof target === "string" ? target : target.name });
}
