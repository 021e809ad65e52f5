import type { Client } from "../client/client.ts";
import type { JobState } from "../job.ts";

/** Jobs that wait for another one to end. */
export interface Children {
  readonly children: readonly {
    readonly id: string;
    readonly name: string;
    readonly state: JobState;
    /** All that it waits for. */
    readonly waitsFor: readonly string[];
  }[];
  /** Whether there are blocked jobs that were not looked at. */
  readonly isPartial: boolean;
}

const mostLooked = 500;

/** A store knows whom an ended job unblocks, not who waits for one: the blocked jobs are looked at, the newest first, within bounds. */
export async function findChildren(client: Client, id: string): Promise<Children> {
  const { jobs, cursor } = await client.list({ states: ["blocked"] }, { limit: mostLooked });
  const children = jobs
    .filter(({ waitsFor }) => waitsFor.includes(id))
    .map(({ id: child, name, state, waitsFor }) => ({ id: child, name, state, waitsFor }));
  return { children, isPartial: cursor !== null };
}
