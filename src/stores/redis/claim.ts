import { EscapementError } from "../../errors.ts";
import { isFragile, isPlainSuccess, type Outcome, outcomeKindOf, outcomeKinds } from "../../state.ts";
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
} from "../../store/claims.ts";
import { orInfinite, Reader, Writer } from "./connection/wire.ts";
import { readClaimedList, stateAt } from "./rows.ts";
import { type Session, spread } from "./session.ts";

/** Claims as lua/shared/finish.lua reads them: plain successes, which most are, need only their id, in groups with one token. */
export function finishFrames(finishes: readonly Finish[]): Buffer {
  const writer = new Writer();
  for (let from = 0; from < finishes.length; ) {
    const to = plainUntil(finishes, from);
    const { id, token, outcome } = finishes[from] as Finish;
    if (to === from) {
      writer.u8(1).u32(token).u32(1).short(id).u8(numberOf(outcome));
      writer.f64(("delayMs" in outcome ? outcome.delayMs : undefined) ?? -1);
      writer.long(textOf(outcome)).long(("error" in outcome ? outcome.error : undefined) ?? "");
      from += 1;
    } else {
      writer
        .u8(0)
        .u32(token)
        .u32(to - from);
      for (; from < to; from += 1) writer.short((finishes[from] as Finish).id);
    }
  }
  return writer.toBuffer();
}

/** The end of the plain successes with the same token. */
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
  return outcomeKinds.indexOf(outcomeKindOf(outcome)) + 1;
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

/** The script refuses what `settle` would: such an outcome is a programming error. */
export function explainRefusal(error: unknown): never {
  const cause = error instanceof EscapementError ? error.cause : null;
  const id = cause instanceof Error ? /^REFUSED (.*)$/.exec(cause.message)?.[1] : undefined;
  if (id === undefined) throw error;
  throw new TypeError(`the at-most-once job ${JSON.stringify(id)} cannot go back once it was dispatched`, {
    cause: error,
  });
}

export function finish(session: Session, { claimer, finishes }: FinishParams): Promise<FinishResult[]> {
  return spread(
    session,
    finishes,
    ({ id }) => session.placeOf(id),
    async (part, index) => {
      const frames = finishFrames(part);
      const answer = await session.text("finish", index, claimer, part.length, frames).catch(explainRefusal);
      return readFinished(new Reader(answer), part.length);
    },
  );
}

/** What the handle knows about earlier claims of the same claimer. */
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
  /** The jobs taken ahead ended at a job that only a direct claim may take. */
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

export function claim(session: Session, params: ClaimParams): Promise<ClaimResult> {
  return session.sequences.send(params.claimer, params.sequence, async (known) => {
    if (session.slots > 1) return claimEverywhere(session, params, known);
    return readClaim(new Reader(await session.text("claim", 0, askFrames(params, known)))).result;
  });
}

export async function step(session: Session, { finishes, claim: wanted }: StepParams): Promise<StepResult> {
  const { claimer, sequence } = wanted;
  if (finishes.length === 0) return { finished: [], claimed: await claim(session, wanted) };
  if (session.slots > 1) {
    const finished = await finish(session, { claimer, finishes });
    return { finished, claimed: await claim(session, wanted) };
  }
  return session.sequences.send(claimer, sequence, async (known) => {
    const args = [askFrames(wanted, known), claimer, finishes.length, finishFrames(finishes)];
    const reader = new Reader(await session.text("step", 0, ...args).catch(explainRefusal));
    const finished = readFinished(reader, finishes.length);
    return { finished, claimed: readClaim(reader).result };
  });
}

/**
 * One slot after the other, until the limit is reached; every slot still gets the sequence, so a late copy of the claim
 * finds it used everywhere. The sequence decides the order, so a repetition visits the slots that answered before first. If one
 * slot has a job that only a direct claim may take, nothing is taken ahead anywhere until that slot was offered one: jobs of other slots
 * would overtake it for as long as they last.
 */
async function claimEverywhere(
  session: Session,
  params: ClaimParams,
  { answered }: Known,
): Promise<ClaimResult> {
  // What was taken in one slot must be known in all of them.
  const known = { answered, doubtful: true };
  const jobs: ClaimedJob[] = [];
  let now = new Date(0);
  let nextAt: Date | null = null;
  let fragile = false;
  let isAlone = false;
  const most = params.limit + (params.ahead ?? 0);
  for (const offset of session.everySlot) {
    const index = (params.sequence + offset) % session.slots;
    const limit = isAlone ? 0 : Math.max(0, params.limit - jobs.length);
    const ahead = isAlone || session.heldUp.size > 0 ? 0 : Math.max(0, most - jobs.length - limit);
    // A fragile job runs alone, across all slots.
    const alone = params.alone && jobs.length === 0;
    const asked = askFrames({ ...params, limit, ahead, alone }, known);
    const { result, isHeldUp } = readClaim(new Reader(await session.text("claim", index, asked)));
    if (result.outcome === "stale") return result;
    if (isHeldUp) session.heldUp.add(index);
    else if (limit > 0) session.heldUp.delete(index);
    jobs.push(...result.jobs);
    isAlone ||= alone && result.jobs.some(isFragile);
    now = result.now;
    fragile ||= result.fragile;
    // A slot that was asked for nothing may have jobs.
    const at = limit + ahead === 0 && most > 0 ? result.now : result.nextAt;
    if (at !== null && (nextAt === null || at < nextAt)) nextAt = at;
  }
  return { outcome: "claimed", jobs, now, nextAt, fragile };
}

function refFrames(claims: readonly ClaimRef[]): Buffer {
  const writer = new Writer();
  for (const { id, token } of claims) writer.short(id).u32(token);
  return writer.toBuffer();
}

export function extend(
  session: Session,
  { claimer, leaseMs, claims }: ExtendParams,
): Promise<ExtendResult[]> {
  return spread(
    session,
    claims,
    ({ id }) => session.placeOf(id),
    async (part, index) => {
      const answer = await session.text("extend", index, claimer, leaseMs, part.length, refFrames(part));
      return Array.from(answer, (mark) => ({
        outcome: mark === 0 ? ("stale" as const) : ("extended" as const),
        cancelRequested: mark === 2,
      }));
    },
  );
}

export async function report(session: Session, { claimer, reports }: ReportParams): Promise<void> {
  await spread(
    session,
    reports,
    ({ id }) => session.placeOf(id),
    async (part, index) => {
      await session.run("report", index, claimer, JSON.stringify(part));
      return [];
    },
  );
}
