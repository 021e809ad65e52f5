import type { Escapement } from "../src/index.ts";
import type { RawLoop } from "./beds/bed.ts";

/** A run that was fast because it did something wrong is not a run. */
export class AuditFailure extends Error {
  override readonly name = "AuditFailure";
}

/** Counts what handlers were called with, outside of every store. */
export class Dispatches {
  readonly #counts = new Map<string, number>();

  add(id: string): void {
    this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
  }

  /** Every one of these exactly once, and nothing else. */
  check(ids: readonly string[]): void {
    const missed = ids.filter((id) => !this.#counts.has(id));
    const repeated = [...this.#counts].filter(([, count]) => count !== 1);
    expect(missed.length, 0, "jobs that never ran");
    expect(repeated.length, 0, "jobs that ran more than once");
    expect(this.#counts.size, ids.length, "different jobs that ran");
  }
}

export function expect(actual: number, expected: number, what: string): void {
  if (actual !== expected) throw new AuditFailure(`${what}: expected ${expected}, got ${actual}`);
}

/** Asks the store itself: so many succeeded, so many wait, and nothing is in any other state. */
export async function checkStates(
  app: Escapement,
  expected: { readonly succeeded?: number; readonly waiting?: number },
): Promise<void> {
  const rows = await app.countBy(["state"]);
  for (const { state, count } of rows) {
    const allowed = state === "succeeded" || state === "waiting" ? (expected[state] ?? 0) : 0;
    expect(count, allowed, `jobs that are ${state}`);
  }
  const total = rows.reduce((sum, { count }) => sum + count, 0);
  expect(total, (expected.succeeded ?? 0) + (expected.waiting ?? 0), "jobs in the store");
}

export async function checkRaw(
  raw: RawLoop,
  expected: { readonly left: number; readonly finished: number },
): Promise<void> {
  const { left, finished } = await raw.count();
  expect(left, expected.left, "raw jobs left");
  expect(finished, expected.finished, "raw jobs finished");
}

/** Bounds a wait: what has not come by then will not come, and that is a finding. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new AuditFailure(`${what}: not done after ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
