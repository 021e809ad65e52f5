/** A bug to be put into a copy of the sources, and the tests that must notice. */
export interface Mutant {
  /** What it breaks. No other of its file has this name. */
  readonly name: string;
  readonly file: string;
  /** Stands in the file once. Short, so that it outlives changes around it. */
  readonly find: string;
  readonly replace: string;
  /** Test files, of which one must fail. */
  readonly tests: readonly string[];
  /** Only tests whose name, or a group around them, matches. @default all */
  readonly pattern?: string;
  /** Why no test can tell it from the original; it is not run. */
  readonly equivalent?: string;
}

/** What mutants of one file have in common. */
export type Shared = Pick<Mutant, "file" | "tests" | "pattern">;

type Change = readonly [name: string, find: string, replace: string, extra?: { readonly equivalent: string }];

export function mutantsOf(shared: Shared, changes: readonly Change[]): Mutant[] {
  return changes.map(([name, find, replace, extra]) => ({ ...shared, name, find, replace, ...extra }));
}

/** Why no test can tell whose a named job is. */
export const namedIsOwn =
  "whoever is granted a partition takes over all that was named in it, so what is named there is the owner's";

/** The pattern for some concerns of the conformance suite, on one variant of a store: the others take time and show the same. */
export function concernsOn(variant: string, concerns: string): string {
  return `${variant}.*contract (${concerns})`;
}
