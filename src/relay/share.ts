/**
 * How many partitions a relay should hold: as many as every other, and those left over go to the first by name, so that all relays
 * who see each other agree without talking.
 */
export function fairShare(owner: string, relays: readonly string[], partitions: number): number {
  const everyone = [...new Set([...relays, owner])].toSorted();
  const base = Math.floor(partitions / everyone.length);
  return everyone.indexOf(owner) < partitions % everyone.length ? base + 1 : base;
}
