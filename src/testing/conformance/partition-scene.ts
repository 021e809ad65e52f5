import assert from "node:assert/strict";
import type { NewJob } from "../../store/jobs.ts";
import type { PartitionGrant } from "../../store/partitions.ts";
import { minute, newJob, type Scene, succeed } from "./scene.ts";

export const leaseMs = 10 * minute;
export const relayed = (id: string, changes: Partial<NewJob> = {}): NewJob =>
  newJob(id, { relayed: true, slot: 0, ...changes });

export const acquire = (scene: Scene, owner: string, want = 1, partitions = 1): Promise<PartitionGrant[]> =>
  scene.store.acquirePartitions({ owner, leaseMs, partitions, want });

export async function own(scene: Scene, owner: string): Promise<PartitionGrant> {
  const [grant] = await acquire(scene, owner);
  assert(grant, `${owner} was granted no partition`);
  return grant;
}

/** A checkpoint of the first partition, unless told otherwise, that settles and names nothing unless told. */
export const checkpoint = (
  scene: Pick<Scene, "store">,
  owner: string,
  epoch: number,
  changes: {
    partition?: number;
    settled?: { id: string; token: number }[];
    name?: string[];
    version?: number;
    mark?: Date;
    aheadMs?: number;
  } = {},
) =>
  scene.store.checkpoint({
    owner,
    partition: changes.partition ?? 0,
    epoch,
    settled: (changes.settled ?? []).map(({ id, token }) => ({ id, token, outcome: succeed })),
    mark: changes.mark ?? null,
    name: (changes.name ?? []).map((id) => ({ id, version: changes.version ?? 1 })),
    aheadMs: changes.aheadMs ?? 0,
  });
