import type { Definitions, History, JobState } from "../api/answers.ts";
import { endedIn } from "./rates.ts";

export const deliveries = ["at-most-once", "at-least-once", "effectively-once"] as const;

export type Delivery = (typeof deliveries)[number];

export const promises: Readonly<Record<Delivery, string>> = {
  "at-most-once": "Never dispatched twice. When nobody knows the outcome it is lost, with a reason.",
  "at-least-once": "Dispatched until it is confirmed. A fault may run it again.",
  "effectively-once": "Dispatched until confirmed, and its effect commits once for each key.",
};

/** Counts of what the store has. */
export type Kept = Readonly<
  Record<Delivery, readonly { readonly name?: string; readonly state?: JobState; readonly count: number }[]>
>;

/** What became of the promise of one definition. */
export interface Account {
  readonly name: string;
  readonly delivery: Delivery;
  readonly ended: number;
  readonly retries: number;
  readonly reruns: number;
  readonly prevented: number;
  readonly preventedHow: string;
  readonly dead: number;
  readonly lost: number;
}

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
      const { existing = 0, absorbed = 0, stale = 0 } = known.seen.find((one) => one.name === name) ?? {};
      return {
        name,
        delivery,
        ended: sum(endedIn),
        retries: sum(({ failed }) => failed),
        reruns: sum(({ crashed }) => crashed),
        prevented: existing + absorbed + stale,
        preventedHow: `${existing} enqueues of an id that was there, ${absorbed} absorbed by a unique key, ${stale} stale outcomes refused`,
        dead: inState("dead"),
        lost: inState("lost"),
      };
    })
    .sort((a, b) => a.name.localeCompare(b.name));
}
