/** Chance that replays: the same seed gives the same numbers, from 0 (inclusive) to 1. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    // Mulberry32: small, fast, and far better than its size; nothing here needs to be unguessable.
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
