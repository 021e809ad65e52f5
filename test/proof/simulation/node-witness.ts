import type {
  ClaimParams,
  ClaimRef,
  Finish,
  FinishParams,
  ReportParams,
  StepParams,
  StepResult,
} from "../../../src/store/claims.ts";
import type { NodeRecord } from "../../../src/store/nodes.ts";
import { type HandlerRun, type History, refOf } from "./history.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import type { StoreWitness } from "./store-witness.ts";

/** Stands beside one process and watches that it keeps what it owes: every outcome is sent until it is answered, and no claim is forgotten. */
export class NodeWitness {
  readonly #process: SimulatedProcess;
  readonly #history: History;
  readonly #store: StoreWitness;
  /** Outcomes that its handlers have come to and that no answer has settled. */
  readonly #owed = new Map<string, number>();
  readonly #settled = new Set<string>();
  /** How many trips have left without an outcome, because what its job had reported was still to be written. */
  readonly #behindReports = new Map<string, number>();
  /** Outcomes that are on their way: two trips may be, at the same time. */
  readonly #underWay = new Set<string>();
  readonly #sent = new Set<string>();
  /** Claims that an answer has told it of. */
  readonly #known = new Set<string>();

  constructor(process: SimulatedProcess, history: History, store: StoreWitness) {
    this.#process = process;
    this.#history = history;
    this.#store = store;
  }

  ended(run: HandlerRun): void {
    const ref = refOf(run.job);
    if (run.end !== "committed" && !this.#settled.has(ref)) this.#owed.set(ref, this.#history.now);
  }

  sent(verb: string, params: unknown): void {
    if (verb === "putNode") this.#presence((params as NodeRecord).id);
    if (verb === "report") this.#reported(params as ReportParams);
    const finishes = finishesOf(verb, params);
    if (finishes === null) return;
    const claim = verb === "step" ? (params as StepParams).claim : (params as ClaimParams | FinishParams);
    // A node that could not start has ended, and whatever it owed with it: its lease runs out.
    if (this.#process.claimer !== claim.claimer) this.#owed.clear();
    this.#process.claimer = claim.claimer;
    const sent = new Set(finishes.map(refOf));
    for (const ref of sent) this.#sent.add(ref);
    for (const [ref, at] of this.#owed) {
      // What came to its end in this very moment may still be on its way to the outbox.
      if (at < this.#history.now && !sent.has(ref) && !this.#underWay.has(ref)) this.#leftOut(ref);
    }
    for (const ref of sent) this.#underWay.add(ref);
  }

  /** A call came to its end in some way or other, as far as the process knows. */
  returned(verb: string, params: unknown): void {
    for (const finish of finishesOf(verb, params) ?? []) this.#underWay.delete(refOf(finish));
  }

  /** An outcome waits for two trips, no longer, if it came while both were waiting for reports and its own are not among them. */
  #leftOut(ref: string): void {
    const trips = this.#behindReports.get(ref) ?? 0;
    if (!this.#sent.has(ref) && trips < 2) return void this.#behindReports.set(ref, trips + 1);
    this.#history.violate(
      "an outcome is sent until it is answered",
      `${ref} of ${this.#process.name} was left out`,
    );
  }

  #reported({ reports }: ReportParams): void {
    for (const report of reports) {
      if (!this.#sent.has(refOf(report))) continue;
      this.#history.violate(
        "what a job reports is sent before its outcome",
        `${refOf(report)} of ${this.#process.name} reported too late`,
      );
    }
  }

  /** A process that works under one name and still tells of another has left a failed start running. */
  #presence(id: string): void {
    const { claimer, name } = this.#process;
    if (claimer !== null && id !== claimer) {
      this.#history.violate("a start that failed leaves nothing running", `${name} shows itself as two`);
    }
  }

  /** What the store holds for this process right after a call of it; the answer will be judged by this. */
  heldInStore(verb: string): readonly ClaimRef[] {
    if (verb !== "step") return [];
    const { claimer } = this.#process;
    return [...this.#store.current.values()].filter(
      (job) =>
        job.state === "active" &&
        job.claimer === claimer &&
        (this.#history.claims.get(refOf(job))?.leaseUntil ?? 0) > this.#history.now,
    );
  }

  answered(verb: string, params: unknown, result: unknown, held: readonly ClaimRef[]): void {
    for (const finish of finishesOf(verb, params) ?? []) {
      this.#owed.delete(refOf(finish));
      this.#settled.add(refOf(finish));
    }
    if (verb !== "step") return;
    for (const job of (result as StepResult).claimed.jobs) this.#known.add(refOf(job));
    for (const claim of held) {
      if (!this.#known.has(refOf(claim))) {
        this.#history.violate(
          "a lost reply costs no claim",
          `${this.#process.name} will never hear of ${refOf(claim)}`,
        );
      }
    }
  }
}

function finishesOf(verb: string, params: unknown): readonly Finish[] | null {
  if (verb === "step") return (params as StepParams).finishes;
  return verb === "finish" ? (params as FinishParams).finishes : null;
}
