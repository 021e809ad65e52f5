/** Histories of published jobs made by hand, for the tests of the checker. */
import type { Delivery } from "../../../job.ts";
import type { PublishResult } from "../../../message/transport.ts";
import type { Outcome } from "../../../state.ts";
import { check, type Verdict } from "../../checker.ts";
import type { FinalJob, History } from "../../history.ts";
import { ended, enqueued, history, kinds, run } from "../../test/hand-made.ts";
import type { Copy, RelayEvidence, RelayLine } from "../evidence.ts";

export const relayRules: RelayEvidence["rules"] = { inFlight: 4, dispatchTimeoutMs: 500 };

export interface Part extends Partial<Omit<History, "relay">> {
  readonly relay?: readonly RelayLine[];
  readonly copies?: readonly Copy[];
}

export interface PublishOptions {
  readonly node?: string;
  /** Null: the node died before it heard. */
  readonly how?: PublishResult["kind"] | null;
  readonly drilled?: boolean;
  readonly attempt?: number;
  readonly epoch?: number;
  /** How its end was written; null: it was not. @default what follows from the answer */
  readonly settled?: Outcome["kind"] | null;
  /** Whether the relay told of a failure. @default true */
  readonly told?: boolean;
  readonly named?: boolean;
}

const consequences = { acknowledged: "succeed", refused: "rollback", ambiguous: "rollback" } as const;

/** A message: named 10 ms before, answered after 10, its end written after 20. */
export function published(
  job: string,
  token: number,
  atMs: number,
  options: PublishOptions = {},
): RelayLine[] {
  const { node = "1.1", how = "acknowledged", drilled = false, attempt = 1, epoch = 1 } = options;
  const { settled = how === null ? null : consequences[how], told = true, named = true } = options;
  const of = { node, job, token };
  const lines: RelayLine[] = [];
  const [sentAtMs, partition] = [atMs - 20, 0];
  if (named)
    lines.push({ ...of, what: "name", atMs: atMs - 10, partition, epoch, sentAtMs, askedAtMs: sentAtMs });
  lines.push({ ...of, what: "publish", atMs, attempt, timeoutMs: 500, schedule: null, fireAt: null });
  if (how !== null) lines.push({ ...of, what: "answer", atMs: atMs + 10, how, drilled, error: null });
  if (told && how !== null && how !== "acknowledged")
    lines.push({ ...of, what: "retry", atMs: atMs + 11, phase: "publish", ambiguous: how === "ambiguous" });
  if (settled !== null)
    lines.push({ ...of, what: "settle", atMs: atMs + 20, outcome: settled, written: true });
  return lines;
}

export function copy(job: string, token: number, { attempt = 1, kept = true } = {}): Copy {
  return { job, token, attempt, kept };
}

export function granted(epoch: number, atMs: number, node: string): RelayLine {
  return { what: "grant", node, atMs, partition: 0, epoch };
}

/** One job, published, taken, handled and ended without a hitch; or with what is given instead. */
export function routed(
  job: string,
  delivery: Delivery,
  given: Part & { final?: Partial<FinalJob> } = {},
): Part {
  const { final = {}, ...part } = given;
  return {
    operations: [enqueued(job, delivery)],
    relay: published(job, 1, 50),
    copies: [copy(job, 1)],
    lines: run(job, 1, 80, { node: "c1.1" }),
    jobs: [ended(job, delivery, { resultToken: null, ...final })],
    effects: delivery === "effectively-once" ? [{ job, token: 1 }] : [],
    ...part,
  };
}

export function relayed(...parts: readonly Part[]): History {
  const lines = parts.flatMap(({ relay = [] }) => relay).toSorted((a, b) => a.atMs - b.atMs);
  const copies = parts.flatMap((part) => part.copies ?? []);
  const bare = parts.map(({ relay: _, copies: __, ...part }) => part);
  return { ...history(...bare), relay: { rules: relayRules, lines, copies } };
}

export function judge(...parts: readonly Part[]): Verdict {
  return check(relayed(...parts));
}

export function brokenBy(...parts: readonly Part[]): string[] {
  return kinds(judge(...parts));
}
