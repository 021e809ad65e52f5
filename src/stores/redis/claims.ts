import { EscapementError } from "../../errors.ts";
import { isFragile, isPlainSuccess, type Outcome } from "../../state.ts";
import type {
  ClaimedJob,
  ClaimParams,
  ClaimRef,
  ClaimResult,
  ExtendParams,
  ExtendResult,
  Finish,
  FinishParams,
  FinishResult,
  ReportParams,
  StepParams,
  StepResult,
} from "../../store.ts";
import { readClaimedList, stateAt } from "./record.ts";
import { type Space, spread } from "./space.ts";
import { orInfinite, Reader, Writer } from "./wire.ts";

/** The scripts count outcomes from 1, in this order. */
const kinds: readonly Outcome["kind"][] = [
  "succeed",
  "retry",
  "snooze",
  "release",
  "rollback",
  "die",
  "lose",
  "crash",
];
/** A success whose result is left out has a reason instead, and a number of its own. */
const succeedWithout = kinds.length + 1;

/** Claims as lua/shared/finish.lua reads them: plain successes, which most are, need no more than their id, in groups with one token. */
export function finishFrames(finishes: readonly Finish[]): Buffer {
  const writer = new Writer();
  for (let from = 0; from < finishes.length; ) {
    const to = plainUntil(finishes, from);
    const { id, token, outcome } = finishes[from] as Finish;
    if (to === from) {
      writer.u8(1).i32(token).u32(1).short(id).u8(numberOf(outcome));
      writer.f64(("delayMs" in outcome ? outcome.delayMs : undefined) ?? -1);
      writer.long(textOf(outcome)).long(("error" in outcome ? outcome.error : undefined) ?? "");
      from += 1;
    } else {
      writer
        .u8(0)
        .i32(token)
        .u32(to - from);
      for (; from < to; from += 1) writer.short((finishes[from] as Finish).id);
    }
  }
  return writer.toBuffer();
}

/** How far plain successes with the same token go. */
function plainUntil(finishes: readonly Finish[], from: number): number {
  const token = finishes[from]?.token;
  let at = from;
  for (; at < finishes.length; at += 1) {
    const { outcome, token: own } = finishes[at] as Finish;
    if (own !== token || !isPlainSuccess(outcome) || outcome.result !== null) break;
  }
  return at;
}

function numberOf(outcome: Outcome): number {
  const isWithout = outcome.kind === "succeed" && outcome.notKept !== undefined;
  return isWithout ? succeedWithout : kinds.indexOf(outcome.kind) + 1;
}

function textOf(outcome: Outcome): string {
  if (outcome.kind === "succeed") return outcome.notKept ?? outcome.result ?? "";
  return "reason" in outcome ? outcome.reason : "";
}

export function readFinished(reader: Reader, count: number): FinishResult[] {
  return Array.from({ length: count }, () => {
    const outcome = (["stale", "written", "repeated"] as const)[reader.u8()] ?? "stale";
    const state = reader.u8();
    return { outcome, state: state === 0 ? null : stateAt(state) };
  });
}

/** The script refuses what `settle` would: such an outcome is a programmer's error. */
export function explainRefusal(error: unknown): never {
  const cause = error instanceof EscapementError ? error.cause : null;
  const id = cause instanceof Error ? /^REFUSED (.*)$/.exec(cause.message)?.[1] : undefined;
  if (id === undefined) throw error;
  throw new TypeError(`the at-most-once job ${JSON.stringify(id)} cannot go back once it was dispatched`, {
    cause: error,
  });
}

export function finish(space: Space, { claimer, finishes }: FinishParams): Promise<FinishResult[]> {
  return spread(
    space,
    finishes,
    ({ id }) => space.placeOf(id),
    async (part, index) => {
      const frames = finishFrames(part);
      const answer = await space.text("finish", index, claimer, part.length, frames).catch(explainRefusal);
      return readFinished(new Reader(answer), part.length);
    },
  );
}

/** What the handle knows of earlier claims of the same claimer. */
interface Known {
  readonly answered: number;
  readonly doubtful: boolean;
}

/** A claim as lua/shared/claim.lua reads it; no limit is an infinite one. */
function askFrames(params: ClaimParams, { answered, doubtful }: Known): Buffer {
  const { claimer, sequence, leaseMs, limit, ahead = 0, alone, queues, names } = params;
  const writer = new Writer().short(claimer).f64(sequence).f64(answered).f64(leaseMs).f64(limit).f64(ahead);
  writer.u8(alone ? 1 : 0).u8(doubtful ? 1 : 0);
  writer.i32(queues === null ? -1 : queues.length).u32(names.length);
  for (const { queue, limit: most } of queues ?? []) writer.short(queue).f64(most);
  for (const { name, concurrency, rate } of names) {
    writer
      .short(name)
      .f64(orInfinite(concurrency))
      .f64(orInfinite(rate?.limit ?? null))
      .f64(rate?.perMs ?? 0);
  }
  return writer.toBuffer();
}

/** An answer of lua/claim.lua. */
interface Claimed {
  readonly result: ClaimResult;
  /** What was taken ahead ended at a job that only a direct claim may take. */
  readonly isHeldUp: boolean;
}

function readClaim(reader: Reader): Claimed {
  const outcome = reader.u8() === 1 ? "claimed" : "stale";
  const now = new Date(reader.f64());
  const nextAt = reader.date();
  const fragile = reader.u8() === 1;
  const isHeldUp = reader.u8() === 1;
  const jobs = readClaimedList(reader, reader.u32());
  return { result: { outcome, jobs, now, nextAt, fragile }, isHeldUp };
}

export function claim(space: Space, params: ClaimParams): Promise<ClaimResult> {
  return space.sequences.send(params.claimer, params.sequence, async (known) => {
    if (space.slots > 1) return claimEverywhere(space, params, known);
    return readClaim(new Reader(await space.text("claim", 0, askFrames(params, known)))).result;
  });
}

export async function step(space: Space, { finishes, claim: wanted }: StepParams): Promise<StepResult> {
  const { claimer, sequence } = wanted;
  if (finishes.length === 0) return { finished: [], claimed: await claim(space, wanted) };
  if (space.slots > 1) {
    const finished = await finish(space, { claimer, finishes });
    return { finished, claimed: await claim(space, wanted) };
  }
  return space.sequences.send(claimer, sequence, async (known) => {
    const args = [askFrames(wanted, known), claimer, finishes.length, finishFrames(finishes)];
    const reader = new Reader(await space.text("step", 0, ...args).catch(explainRefusal));
    const finished = readFinished(reader, finishes.length);
    return { finished, claimed: readClaim(reader).result };
  });
}

/**
 * One slot after the other, until the limit is reached; each is told of the sequence all the same, so that a copy that comes late
 * finds it used everywhere. The order follows from the sequence: a repetition meets the slots that answered before in front. Where one
 * slot has a job that only a direct claim may take, nothing is taken ahead anywhere until that slot was offered one: jobs of other slots
 * would overtake it for as long as they last.
 */
async function claimEverywhere(space: Space, params: ClaimParams, { answered }: Known): Promise<ClaimResult> {
  // What was taken in one slot must be known in all of them.
  const known = { answered, doubtful: true };
  const jobs: ClaimedJob[] = [];
  let now = new Date(0);
  let nextAt: Date | null = null;
  let fragile = false;
  let isAlone = false;
  const most = params.limit + (params.ahead ?? 0);
  for (const offset of space.everySlot) {
    const index = (params.sequence + offset) % space.slots;
    const limit = isAlone ? 0 : Math.max(0, params.limit - jobs.length);
    const ahead = isAlone || space.heldUp.size > 0 ? 0 : Math.max(0, most - jobs.length - limit);
    // A fragile job has no company, of another slot neither.
    const alone = params.alone && jobs.length === 0;
    const asked = askFrames({ ...params, limit, ahead, alone }, known);
    const { result, isHeldUp } = readClaim(new Reader(await space.text("claim", index, asked)));
    if (result.outcome === "stale") return result;
    if (isHeldUp) space.heldUp.add(index);
    else if (limit > 0) space.heldUp.delete(index);
    jobs.push(...result.jobs);
    isAlone ||= alone && result.jobs.some(isFragile);
    now = result.now;
    fragile ||= result.fragile;
    // A slot that was asked for nothing may have something.
    const at = limit + ahead === 0 && most > 0 ? result.now : result.nextAt;
    if (at !== null && (nextAt === null || at < nextAt)) nextAt = at;
  }
  return { outcome: "claimed", jobs, now, nextAt, fragile };
}

function refFrames(claims: readonly ClaimRef[]): Buffer {
  const writer = new Writer();
  for (const { id, token } of claims) writer.short(id).i32(token);
  return writer.toBuffer();
}

export function extend(space: Space, { claimer, leaseMs, claims }: ExtendParams): Promise<ExtendResult[]> {
  return spread(
    space,
    claims,
    ({ id }) => space.placeOf(id),
    async (part, index) => {
      const answer = await space.text("extend", index, claimer, leaseMs, part.length, refFrames(part));
      return Array.from(answer, (mark) => ({
        outcome: mark === 0 ? ("stale" as const) : ("extended" as const),
        cancelRequested: mark === 2,
      }));
    },
  );
}

export async function report(space: Space, { claimer, reports }: ReportParams): Promise<void> {
  await spread(
    space,
    reports,
    ({ id }) => space.placeOf(id),
    async (part, index) => {
      await space.run("report", index, claimer, JSON.stringify(part));
      return [];
    },
  );
}
