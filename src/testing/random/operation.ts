import type { Store } from "../../store/store.ts";
import type { At } from "./time.ts";

/** One call that is made in the same way on every store. */
export interface Operation {
  readonly verb: string;
  /** What it asks for, to be shown to a person. */
  readonly asked: (at: At) => unknown;
  readonly run: (store: Store, at: At) => Promise<unknown>;
}

export function operation<P>(
  verb: string,
  params: (at: At) => P,
  run: (store: Store, params: P) => Promise<unknown>,
): Operation {
  return { verb, asked: params, run: (store, at) => run(store, params(at)) };
}

/** Calls again with each answer's cursor until there is none; cursors themselves are each store's own. */
export async function pages<T>(
  call: (cursor: string | null) => Promise<{ readonly items: readonly T[]; readonly cursor: string | null }>,
): Promise<T[]> {
  const all: T[] = [];
  let cursor: string | null = null;
  do {
    const page = await call(cursor);
    all.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== null);
  return all;
}
