import type { Client } from "../client/client.ts";

/** How many waiting jobs are looked at for it. */
const mostLooked = 100_000;

/** The id of the job of a queue that has been due the longest, as far as a bounded look shows; null when nothing is due. */
export async function findOldestDue(client: Client, queue: string): Promise<string | null> {
  const { queues } = await client.depths();
  const at = queues.find((one) => one.queue === queue)?.oldestDueAt ?? null;
  if (at === null) return null;
  const filter = {
    queues: [queue],
    states: ["waiting"],
    runAfter: at,
    runBefore: new Date(at.getTime() + 1),
  } as const;
  const page = { order: "oldest", limit: 1, cursor: null } as const;
  const { jobs } = await client.scan({ filter, ...page, lookAt: mostLooked });
  return jobs[0]?.id ?? null;
}
