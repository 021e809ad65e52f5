import { count } from "../format.ts";

export const deliveries = ["at-most-once", "at-least-once", "effectively-once"] as const;

export type Delivery = (typeof deliveries)[number];

export const promises: Readonly<Record<Delivery, string>> = {
  "at-most-once": "Never dispatched twice. If the outcome is unknown, it is lost, with a reason.",
  "at-least-once": "Dispatched until it is confirmed. A fault may run it again.",
  "effectively-once": "Dispatched until confirmed, and its effect commits once for each key.",
};

/** The verdict on the guarantee of one definition. */
export interface Account {
  readonly name: string;
  readonly delivery: Delivery;
  readonly ended: number;
  readonly retries: number;
  readonly reruns: number;
  /** Enqueues of an id that already existed. */
  readonly existing: number;
  /** Enqueues absorbed by a unique key. */
  readonly absorbed: number;
  /** Outcomes of a claim that another had taken over from. */
  readonly stale: number;
  readonly dead: number;
  readonly lost: number;
}

export function preventedOf({ existing, absorbed, stale }: Account): number {
  return existing + absorbed + stale;
}

/** What the figures say of a promise. */
export interface Verdict {
  /** Null: nothing ended yet, so there is nothing to judge. */
  readonly isKept: boolean | null;
  readonly ended: number;
  /** What happened, the most telling first. */
  readonly facts: readonly string[];
}

/** Judges a guarantee by what would break it: a second run of at-most-once, or the loss of one that must be dispatched until it is done. */
export function verdictOf(delivery: Delivery, accounts: readonly Account[]): Verdict {
  const sum = (of: (one: Account) => number): number =>
    accounts.filter((one) => one.delivery === delivery).reduce((total, one) => total + of(one), 0);
  const ended = sum((one) => one.ended);
  const reruns = sum((one) => one.reruns);
  const retries = sum((one) => one.retries);
  const stale = sum((one) => one.stale);
  const lost = sum((one) => one.lost);
  const again = reruns + retries;
  const refused = `${count(stale)} stale ${stale === 1 ? "outcome" : "outcomes"} refused`;
  const isOnce = delivery === "at-most-once";
  const facts = isOnce
    ? [`${count(again)} ran twice`, `${count(lost)} lost with a reason`, refused]
    : [`${count(lost)} lost`, `${count(reruns)} run again after a fault`, refused];
  const broken = isOnce ? again : lost;
  return { isKept: ended === 0 && broken === 0 ? null : broken === 0, ended, facts };
}
