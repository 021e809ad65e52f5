import { type PartitionGrant, slotCount } from "../store.ts";

/**
 * How many partitions a relay should hold: as many as every other, and those left over go to the first by name, so that all relays
 * who see each other agree without talking.
 */
export function fairShare(owner: string, relays: readonly string[], partitions: number): number {
  const everyone = [...new Set([...relays, owner])].toSorted();
  const base = Math.floor(partitions / everyone.length);
  return everyone.indexOf(owner) < partitions % everyone.length ? base + 1 : base;
}

/**
 * How many partitions there are. The store knows, since the first relay decided it; a setting that came later may say otherwise, and then a
 * grant gives the true number away.
 */
export function partitionCount(asked: number, grants: readonly PartitionGrant[]): number {
  const fits = (count: number): boolean =>
    grants.every(
      ({ partition, firstSlot, endSlot }) =>
        firstSlot === Math.floor((partition * slotCount) / count) &&
        endSlot === Math.floor(((partition + 1) * slotCount) / count),
    );
  if (fits(asked)) return asked;
  for (let count = 1; count <= slotCount; count += 1) if (fits(count)) return count;
  return asked;
}
