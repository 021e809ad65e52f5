import type { Client } from "../client/client.ts";
import { type Asked, readMany } from "../client/many.ts";
import type { AnyDefinition } from "../definition.ts";
import type { EnqueueOptions, EnqueueVerbs, JobsForHandlers } from "../enqueue.ts";
import type { Emit } from "../events.ts";
import type { EnqueueReceipt, JobRef } from "../receipt.ts";
import type { Enqueuing, Telemetry } from "../telemetry/telemetry.ts";

/** The verbs by which an app's callers enqueue; `check` refuses before anything is made. */
export function enqueueVerbs(
  client: Client,
  emit: Emit,
  telemetry: Telemetry | null,
  check: () => void,
): EnqueueVerbs {
  const tell = teller(client, emit);
  const enqueue = async (target: AnyDefinition | string, input?: unknown, options: EnqueueOptions = {}) => {
    check();
    const write = (): Promise<EnqueueReceipt> => client.enqueue(target, input, options);
    const receipt = await (telemetry === null
      ? write()
      : telemetry.enqueuing({ name: nameOf(target), queue: client.queueOf(target), count: 1 }, write));
    tell(receipt, target);
    return receipt;
  };
  const enqueueMany = async (first: unknown, second?: unknown, third?: unknown) => {
    check();
    const many = readMany(first, second, third);
    const write = (): Promise<EnqueueReceipt[]> => client.enqueueMany(many);
    const receipts = await (telemetry === null
      ? write()
      : telemetry.enqueuing(enqueuing(client, many.asked), write));
    for (const [index, receipt] of receipts.entries()) tell(receipt, many.asked[index]?.target ?? "");
    return receipts;
  };
  // The overloads say what goes with what; here they are all alike.
  return { enqueue, enqueueMany } as EnqueueVerbs;
}

/** What handlers may ask. They may still do so while the app is stopping: it waits for them. */
export function jobsForHandlers(client: Client, emit: Emit, telemetry: Telemetry | null): JobsForHandlers {
  return {
    ...enqueueVerbs(client, emit, telemetry, () => {}),
    get: ((job: JobRef) => client.get(job)) as JobsForHandlers["get"],
    within: (write) => client.enqueuer(write, teller(client, emit)),
  };
}

type Tell = (receipt: EnqueueReceipt, target: AnyDefinition | string) => void;

function teller(client: Client, emit: Emit): Tell {
  return (receipt, target) =>
    emit("enqueued", {
      id: receipt.id,
      outcome: receipt.outcome,
      name: nameOf(target),
      queue: client.queueOf(target) ?? "",
    });
}

function nameOf(target: AnyDefinition | string): string {
  return typeof target === "string" ? target : target.name;
}

/** What all of them have in common. */
function enqueuing(client: Client, asked: readonly Asked[]): Enqueuing {
  const [name, ...otherNames] = new Set(asked.map(({ target }) => nameOf(target)));
  const [queue, ...otherQueues] = new Set(asked.map(({ target }) => client.queueOf(target)));
  return {
    name: otherNames.length > 0 ? null : (name ?? null),
    queue: otherQueues.length > 0 ? null : (queue ?? null),
    count: asked.length,
  };
}
