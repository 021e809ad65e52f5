import type { Attempt } from "../attempts.ts";
import type { AnswerLine, NameLine, PublishLine, RelayEvidence, RelayLine, SettleLine } from "./evidence.ts";

/** One message that was handed to a transport, and what became of it. */
export interface Publish extends Attempt {
  /** Which attempt it said that it was. */
  readonly attempt: number;
  readonly timeoutMs: number;
  /** Null: nobody heard of it, since its node was killed. */
  readonly answer: AnswerLine | null;
  /** By which it may be published; null: it was not named to this node at all. */
  readonly naming: NameLine | null;
}

/** What relays did with one job under one token. */
interface Dispatch {
  name: NameLine | null;
  readonly publishes: PublishLine[];
  readonly answers: AnswerLine[];
  settle: SettleLine | null;
}

/** All publishes by job, in order. Those of one token are several when a rollback could not be written. */
export function publishesOf(evidence: RelayEvidence): Map<string, Publish[]> {
  const all = [...dispatchesOf(evidence).values()].flatMap(({ publishes, answers, name, settle }) =>
    publishes.map((line, index): Publish => {
      const { job, token, node, atMs, attempt, timeoutMs, schedule, fireAt } = line;
      const answer = answers[index] ?? null;
      const end = index === publishes.length - 1 && settle?.written === true ? settle : null;
      const isOver = answer !== null && answer.how !== "acknowledged";
      return {
        job,
        token,
        node,
        attempt,
        timeoutMs,
        answer,
        naming: name,
        claimedAtMs: name?.askedAtMs ?? atMs,
        startAtMs: atMs,
        endAtMs: end?.atMs ?? (isOver ? answer.atMs : null),
        how: answer === null ? null : isOver ? "refused" : "returned",
        done: end?.outcome === "succeed",
        schedule,
        fireAt,
      };
    }),
  );
  return byJob(all);
}

/** Publishes, and namings that no publish followed: a node may die between the two, and its work must be taken over all the same. */
export function takenUp(
  evidence: RelayEvidence,
  publishes: ReadonlyMap<string, readonly Publish[]>,
): Map<string, Attempt[]> {
  const unpublished = [...dispatchesOf(evidence).values()].flatMap(({ name, publishes: sent, settle }) => {
    if (name === null || sent.length > 0) return [];
    const { job, token, node, atMs, askedAtMs } = name;
    // One that is refused as stale was over when another took over.
    const isOver = settle !== null;
    const attempt: Attempt = {
      job,
      token,
      node,
      claimedAtMs: askedAtMs,
      startAtMs: atMs,
      endAtMs: isOver ? settle.atMs : null,
      how: isOver ? "refused" : null,
      done: false,
      schedule: null,
      fireAt: null,
    };
    return [attempt];
  });
  const all = byJob([...publishes.values()].flat<readonly (readonly Attempt[])[]>().concat(unpublished));
  // Who was held up hears late that it may publish, after another that has taken over.
  return new Map([...all].map(([job, attempts]) => [job, attempts.toSorted((a, b) => a.token - b.token)]));
}

function byJob<T extends Attempt>(attempts: readonly T[]): Map<string, T[]> {
  return Map.groupBy(
    attempts.toSorted((a, b) => a.startAtMs - b.startAtMs),
    ({ job }) => job,
  );
}

function dispatchesOf({ lines }: RelayEvidence): Map<string, Dispatch> {
  const found = new Map<string, Dispatch>();
  const of = (line: Extract<RelayLine, { token: number }>): Dispatch => {
    const ref = refOf(line);
    const known = found.get(ref) ?? { name: null, publishes: [], answers: [], settle: null };
    found.set(ref, known);
    return known;
  };
  for (const line of lines) {
    if (line.what === "name") of(line).name ??= line;
    else if (line.what === "publish") of(line).publishes.push(line);
    else if (line.what === "answer") of(line).answers.push(line);
    else if (line.what === "settle") of(line).settle = line;
  }
  return found;
}

/**
 * Tells whether a job was named out of the line of those that are due, and not with its partition: whoever had it before had given it back,
 * also where it died before it could say so.
 */
export function namedFromLine({ lines }: RelayEvidence): (attempt: Attempt) => boolean {
  const grants = new Map<string, number>();
  const place = (line: { node: string; partition: number; epoch: number }): string =>
    `${line.node} ${line.partition} ${line.epoch}`;
  for (const line of lines) if (line.what === "grant") grants.set(place(line), line.atMs);
  const fromLine = new Set<string>();
  for (const line of lines) {
    if (line.what === "name" && line.askedAtMs >= (grants.get(place(line)) ?? Number.POSITIVE_INFINITY))
      fromLine.add(refOf(line));
  }
  return (attempt) => fromLine.has(refOf(attempt));
}

/** A token belongs to one relay, for one naming. */
export function refOf({ job, token, node }: Pick<Publish, "job" | "token" | "node">): string {
  return `${job} ${token} ${node}`;
}
