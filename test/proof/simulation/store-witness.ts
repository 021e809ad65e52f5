import { isFragile, isTerminal, settle } from "../../../src/state.ts";
import type {
  ClaimedJob,
  ClaimParams,
  ClaimResult,
  ExtendParams,
  ExtendResult,
  Finish,
  FinishParams,
  FinishResult,
  StepParams,
  StepResult,
  TransactParams,
  TransactResult,
} from "../../../src/store/claims.ts";
import type { EnqueueParams, EnqueueResult, SelectParams, StoredJob } from "../../../src/store/jobs.ts";
import type { QueueConfig } from "../../../src/store/queues.ts";
import type { ReapResult } from "../../../src/store/reaping.ts";
import type { Store } from "../../../src/store/store.ts";
import { type Claim, type History, refOf } from "./history.ts";
import { LedgerWitness } from "./ledger-witness.ts";
import { LimitsWitness } from "./limits-witness.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

type Jobs = ReadonlyMap<string, StoredJob>;

/** What one call was allowed to change; whatever else is different afterwards is a violation. */
interface Licence {
  /** Ended by their holder. */
  readonly finished: Set<string>;
  readonly claimed: Set<string>;
  readonly reaped: Set<string>;
  /** Those among them whose claim was taken ahead. */
  readonly spared: Set<string>;
  readonly verb: string;
}

/** Calls that look only; now and then they are checked for having changed nothing. */
const sweepEvery = 25;
const everything = { filter: {}, limit: 10_000, order: "oldest", cursor: null } as const;

/**
 * Stands beside the store, looks at all jobs after each call that may have changed one, and judges the change by the
 * words of the contract.
 */
export class StoreWitness {
  current: Jobs = new Map();
  readonly #store: Store;
  readonly #history: History;
  readonly #limits: LimitsWitness;
  readonly ledger: LedgerWitness;
  readonly #sequences = new Map<string, number>();
  /** Jobs whose holder fell silent before their start, as far as the store could tell. */
  readonly #spared = new Set<string>();
  #looks = 0;

  constructor(store: Store, history: History) {
    this.#store = store;
    this.#history = history;
    this.#limits = new LimitsWitness(history);
    this.ledger = new LedgerWitness(store, history);
  }

  /** The store does what it is asked, and the witness looks at once: nothing else happens in between. */
  async apply<T>(
    process: SimulatedProcess,
    verb: string,
    params: unknown,
    call: () => Promise<T>,
  ): Promise<T> {
    const result = await call();
    const licence: Licence = {
      finished: new Set(),
      claimed: new Set(),
      reaped: new Set(),
      spared: new Set(),
      verb,
    };
    this.#looks += 1;
    if (!changes(verb, params, result) && this.#looks % sweepEvery !== 0) {
      if (verb === "extend") this.#extended(params as ExtendParams, result as ExtendResult[]);
      return result;
    }
    const before = this.current;
    const after: Jobs = new Map((await this.#store.list(everything)).jobs.map((job) => [job.id, job]));
    this.current = after;
    this.#judge(process, verb, params, result, before, after, licence);
    for (const [id, job] of after) this.#judgeJob(before.get(id), job, licence);
    for (const id of before.keys()) {
      if (!after.has(id)) this.#history.violate("an acknowledged job exists", `${id} is gone after ${verb}`);
    }
    this.#limits.judge(after, verb);
    await this.ledger.apply(verb, params, result, after);
    return result;
  }

  #judge(
    process: SimulatedProcess,
    verb: string,
    params: unknown,
    result: unknown,
    before: Jobs,
    after: Jobs,
    licence: Licence,
  ): void {
    switch (verb) {
      case "enqueue":
        return this.#enqueued(params as EnqueueParams, result as EnqueueResult[], before);
      case "finish": {
        const { claimer, finishes } = params as FinishParams;
        return this.#finished(process, claimer, finishes, result as FinishResult[], before, after, licence);
      }
      case "claim":
        return this.#claimed(process, params as ClaimParams, result as ClaimResult, before, after, licence);
      case "step": {
        const { finishes, claim } = params as StepParams;
        const { finished, claimed } = result as StepResult;
        this.#finished(process, claim.claimer, finishes, finished, before, after, licence);
        return this.#claimed(process, claim, claimed, before, after, licence);
      }
      case "extend":
        return this.#extended(params as ExtendParams, result as ExtendResult[]);
      case "transact":
        return this.#transacted(
          process,
          params as TransactParams<unknown>,
          result as TransactResult<unknown>,
          before,
          licence,
        );
      case "reap":
        return this.#reaped(process, result as ReapResult, before, licence);
      case "cancel":
        return this.#cancelled(params as SelectParams);
      case "configureQueue":
        return this.#limits.configured(result as QueueConfig);
    }
  }

  #enqueued(params: EnqueueParams, results: readonly EnqueueResult[], before: Jobs): void {
    for (const [index, job] of params.jobs.entries()) {
      const result = results[index];
      if (result === undefined) continue;
      this.#history.tell(
        "store",
        `enqueue ${job.id}: ${result.outcome}${result.id === job.id ? "" : ` by ${result.id}`}`,
      );
      if (result.outcome !== "added") continue;
      if (before.has(job.id)) this.#history.violate("one id is one job", `${job.id} was added twice`);
      if (job.unique !== null) this.#limits.holdsUnique(job.id, job.unique.key);
    }
  }

  #cancelled({ select, reason }: SelectParams): void {
    if (reason !== "replaced by the next occurrence of its schedule" || !("ids" in select)) return;
    for (const id of select.ids) {
      this.#history.tell("store", `replace ${id}`);
      this.#history.asked.replaced.add(id);
    }
  }

  #finished(
    process: SimulatedProcess,
    claimer: string,
    finishes: readonly Finish[],
    results: readonly FinishResult[],
    before: Jobs,
    after: Jobs,
    licence: Licence,
  ): void {
    for (const [index, finish] of finishes.entries()) {
      const { id, token, outcome } = finish;
      const result = results[index]?.outcome ?? "missing";
      const job = before.get(id);
      this.#history.tell(
        "store",
        `finish ${refOf(finish)} by ${process.name} with ${outcome.kind}: ${result}`,
      );
      const rightful = job?.state === "active" && job.token === token && job.claimer === claimer;
      if (!rightful) {
        if (result === "written")
          this.#history.violate("a stale finish changes nothing", `${refOf(finish)} was written`);
        continue;
      }
      licence.finished.add(id);
      this.#claimEnded(id, token, "holder");
      const now = after.get(id);
      const expected = settle(job, outcome).state;
      const goneOn = now?.token === token + 1 && expected === "waiting";
      if (result !== "written" || (now?.state !== expected && !goneOn)) {
        this.#history.violate("a rightful finish is written", `${refOf(finish)}: ${result}, ${now?.state}`);
      }
    }
  }

  #claimed(
    process: SimulatedProcess,
    params: ClaimParams,
    result: ClaimResult,
    before: Jobs,
    after: Jobs,
    licence: Licence,
  ): void {
    const repeats = this.#sequences.get(params.claimer) === params.sequence;
    this.#sequences.set(params.claimer, params.sequence);
    for (const [place, job] of result.jobs.entries()) {
      const was = before.get(job.id);
      const now = after.get(job.id);
      const ref = refOf(job);
      const ahead = place >= params.limit;
      this.#history.tell("store", `claim ${ref} by ${process.name}${repeats ? " (repeated)" : ""}`);
      if (repeats) {
        if (was?.state !== "active" || was.token !== job.token || was.claimer !== params.claimer) {
          this.#history.violate("a repeated claim brings only what is still held", ref);
        }
        continue;
      }
      licence.claimed.add(job.id);
      // A trip first finishes: that may set the job itself free, or one that waited for it.
      const unblocked = was?.state === "blocked" && licence.finished.size > 0;
      const free = was?.state === "waiting" || unblocked || licence.finished.has(job.id);
      if (!free || job.token !== (was?.token ?? 0) + 1 || now?.claimer !== params.claimer) {
        this.#history.violate(
          "only a waiting job is claimed",
          `${ref} was ${was?.state} under token ${was?.token}`,
        );
      }
      if (job.runAt.getTime() > result.now.getTime())
        this.#history.violate("never early", `${ref} is not due`);
      this.#limits.claimed(job, result.now.getTime(), after);
      if (now?.input !== job.input) this.#history.violate("a dispatch sees the latest edit", ref);
      if (isFragile(job) && (!params.alone || result.jobs.length > 1)) {
        this.#history.violate(
          "a fragile job runs alone",
          `${ref} was claimed with ${result.jobs.length - 1} others`,
        );
      }
      if (ahead) this.#judgeAhead(job, now);
      else this.#spared.delete(job.id);
      const at = this.#history.now;
      const claim = { ahead, id: job.id, token: job.token, process, at, leaseUntil: at + params.leaseMs };
      this.#history.claims.set(ref, { ...claim, endedAt: null, endedBy: null });
    }
  }

  #judgeAhead(job: ClaimedJob, now: StoredJob | undefined): void {
    const isKeyed = now?.concurrencyKey !== null || now.rateKey !== null;
    if (job.delivery === "at-most-once" || isKeyed || job.crashes > 0 || this.#spared.has(job.id))
      this.#history.violate("only what may wait is claimed ahead", refOf(job));
  }

  #extended(params: ExtendParams, results: readonly ExtendResult[]): void {
    for (const [index, claim] of params.claims.entries()) {
      const known = this.#history.claims.get(refOf(claim));
      const extended = results[index]?.outcome === "extended";
      if (known === undefined) continue;
      if (extended) {
        known.leaseUntil = this.#history.now + params.leaseMs;
        known.ahead = false;
      }
      if (extended !== (known.endedAt === null)) {
        this.#history.violate("only a live claim is renewed", `${refOf(claim)}: ${results[index]?.outcome}`);
      }
    }
  }

  #transacted(
    process: SimulatedProcess,
    params: TransactParams<unknown>,
    result: TransactResult<unknown>,
    before: Jobs,
    licence: Licence,
  ): void {
    const job = before.get(params.id);
    const rightful = job?.state === "active" && job.token === params.token && job.claimer === params.claimer;
    this.#history.tell("store", `transact ${refOf(params)} by ${process.name}: ${result.outcome}`);
    if (rightful !== (result.outcome === "committed")) {
      this.#history.violate("an effect commits only under its claim", `${refOf(params)}: ${result.outcome}`);
    }
    if (!rightful) return;
    licence.finished.add(params.id);
    this.#claimEnded(params.id, params.token, "holder");
  }

  #reaped(process: SimulatedProcess, result: ReapResult, before: Jobs, licence: Licence): void {
    for (const { id, state, reason } of result.reaped) {
      this.#history.tell("store", `reap ${id} by ${process.name}: ${state}, ${reason}`);
      const was = before.get(id);
      if (was?.state !== "active") continue;
      licence.reaped.add(id);
      const claim = this.#history.claims.get(refOf(was));
      if (claim?.ahead === true) {
        licence.spared.add(id);
        this.#spared.add(id);
      }
      if (claim !== undefined && claim.leaseUntil > this.#history.now) {
        this.#history.violate(
          "only an expired lease is reaped",
          `${refOf(was)} had ${claim.leaseUntil - this.#history.now} ms left`,
        );
      }
      if (claim !== undefined) this.#judgeTaken(claim);
      this.#claimEnded(id, was.token, "reaper");
    }
  }

  /** While nobody could reach the store nobody can have run it: whoever held it through that must get the time to say so. */
  #judgeTaken({ id, token, process, at }: Claim): void {
    const isStarted = this.#history.runsOf(id).some(({ job }) => job.token === token);
    const isExcused = this.#history.faults.some(
      (fault) => fault.process === process && fault.to >= at && !fault.kind.startsWith("blackout"),
    );
    if (!isStarted || !process.alive || isExcused) return;
    this.#history.violate(
      "an outage takes nothing from a living process",
      `${refOf({ id, token })} of ${process.name}`,
    );
  }

  #claimEnded(id: string, token: number, by: "holder" | "reaper"): void {
    const claim = this.#history.claims.get(refOf({ id, token }));
    if (claim === undefined) return;
    claim.endedAt = this.#history.now;
    claim.endedBy = by;
  }

  /** One job before and after a call. */
  #judgeJob(was: StoredJob | undefined, job: StoredJob, licence: Licence): void {
    const { verb } = licence;
    const say = (invariant: string): void =>
      this.#history.violate(
        invariant,
        `${job.id} went from ${was?.state}#${was?.token} to ${job.state}#${job.token} in ${verb}`,
      );
    if (was === undefined) {
      const isOccurrence = verb === "fire" && job.schedule !== null;
      if (verb !== "enqueue" && !isOccurrence && licence.finished.size === 0)
        say("jobs come from clients and schedules, or with an effect");
      return;
    }
    const redriven =
      verb === "redrive" && (was.state === "dead" || was.state === "lost") && job.state === "waiting";
    if (job.redrives !== was.redrives + (redriven ? 1 : 0)) say("only a redrive is counted as one");
    if (job.state !== was.state && isTerminal(was.state) && !redriven) say("terminal states never regress");
    if (job.token !== was.token + (licence.claimed.has(job.id) ? 1 : 0))
      say("a token rises by one with each claim, and only then");
    const isCrash = licence.reaped.has(job.id) && !licence.spared.has(job.id);
    const crashes = redriven ? 0 : was.crashes + (isCrash ? 1 : 0);
    if (job.crashes !== crashes) say("a crash is counted when, and only when, a started job's lease ran out");
    const moved = job.runAt.getTime() !== was.runAt.getTime();
    if (moved && !["update", "enqueue"].includes(verb) && !redriven && !licence.finished.has(job.id))
      say("a due time moves only by a client or an end");
    if (job.state === was.state || isTerminal(was.state)) return;
    const ended = licence.finished.has(job.id) || licence.reaped.has(job.id);
    if (was.state === "active" && !ended) say("a claim ends only by its holder or the reaper");
    if (
      was.state !== "active" &&
      job.state !== "cancelled" &&
      job.state !== "waiting" &&
      !licence.claimed.has(job.id)
    ) {
      say("only a claim takes a job");
    }
    if (licence.reaped.has(job.id) && job.delivery === "at-most-once" && job.state === "waiting") {
      say("at-most-once is never tried again after a crash");
    }
  }
}

function changes(verb: string, params: unknown, result: unknown): boolean {
  switch (verb) {
    case "enqueue":
    case "update":
    case "cancel":
    case "redrive":
    case "configureQueue":
    case "finish":
    case "transact":
    case "fire":
    case "putSchedule":
    case "removeSchedule":
      return true;
    case "claim":
      return (result as ClaimResult).jobs.length > 0;
    case "step":
      return (params as StepParams).finishes.length > 0 || (result as StepResult).claimed.jobs.length > 0;
    case "reap":
      return (result as ReapResult).reaped.length > 0;
    default:
      return false;
  }
}
