import type { Definitions, History, JobState } from "../api/answers.ts";
import { type Account, type Delivery, deliveries } from "./guarantee-verdict.ts";
import { endedIn } from "./rates.ts";

/** Counts of what the store has. */
export type Kept = Readonly<
  Record<Delivery, readonly { readonly name?: string; readonly state?: JobState; readonly count: number }[]>
>;

interface Sources {
  readonly known: Definitions;
  readonly kept: Kept;
  readonly history: History | null;
}

/** One account for each definition, and for each name of which the store has jobs. */
export function accountsOf({ known, kept, history }: Sources): Account[] {
  const declared = known.definitions.map(({ name, delivery }) => ({ name, delivery }));
  const stored = deliveries.flatMap((delivery) =>
    kept[delivery].map(({ name = "" }) => ({ name, delivery })),
  );
  const all = new Map([...stored, ...declared].map((one) => [`${one.delivery} ${one.name}`, one]));
  return [...all.values()]
    .map(({ name, delivery }): Account => {
      const inState = (state: JobState): number =>
        kept[delivery]
          .filter((row) => row.name === name && row.state === state)
          .reduce((sum, row) => sum + row.count, 0);
      const points = (history?.points ?? []).filter((point) => point.name === name);
      const sum = (of: (point: (typeof points)[number]) => number): number =>
        points.reduce((total, point) => total + of(point), 0);
      return {
        name,
        delivery,
        ended: sum(endedIn),
        retries: sum(({ failed }) => failed),
        reruns: sum(({ crashed }) => crashed),
        existing: sum((point) => point.existing),
        absorbed: sum((point) => point.absorbed),
        stale: sum((point) => point.stale),
        dead: inState("dead"),
        lost: inState("lost"),
      };
    })
    .sort(
      (a, b) =>
        deliveries.indexOf(a.delivery) - deliveries.indexOf(b.delivery) || a.name.localeCompare(b.name),
    );
}
