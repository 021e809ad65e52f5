import type { DispatchPhase } from "../../events.ts";
import type { PublishResult } from "../../message/transport.ts";
import type { Outcome } from "../../state.ts";

/** What is known of a run whose jobs were published, besides what is known of every run. */
export interface RelayEvidence {
  readonly rules: RelayRules;
  readonly lines: readonly RelayLine[];
  /** What the broker had in the end, read by a client of our own. */
  readonly copies: readonly Copy[];
}

export interface RelayRules {
  /** How many jobs may be named and not settled. */
  readonly inFlight: number;
  /** Of every route. */
  readonly dispatchTimeoutMs: number;
}

/** One message that the broker took, as often as it took it. */
export interface Copy {
  readonly job: string;
  readonly token: number;
  readonly attempt: number;
  /** Whether it outlasts who took it: what a receiver by HTTP had in hand when it died is gone. */
  readonly kept: boolean;
}

interface Written {
  readonly node: string;
  readonly atMs: number;
}

interface OfJob extends Written {
  readonly job: string;
  readonly token: number;
}

/** A relay was told that a partition is its own. */
export interface GrantLine extends Written {
  readonly what: "grant";
  readonly partition: number;
  readonly epoch: number;
}

/** A relay was told that it may publish a job, by a checkpoint or with a grant. */
export interface NameLine extends OfJob {
  readonly what: "name";
  readonly partition: number;
  readonly epoch: number;
  /** When the call was sent whose answer said so. */
  readonly sentAtMs: number;
  /** When it was first asked to be named; a fault from then on is a fault of this dispatch. */
  readonly askedAtMs: number;
}

/** A message is handed to the transport. */
export interface PublishLine extends OfJob {
  readonly what: "publish";
  readonly attempt: number;
  /** How long the transport was given. */
  readonly timeoutMs: number;
  readonly schedule: string | null;
  readonly fireAt: number | null;
}

/** The relay heard what became of a message. */
export interface AnswerLine extends OfJob {
  readonly what: "answer";
  readonly how: PublishResult["kind"];
  /** The drill made it so. */
  readonly drilled: boolean;
  /** Why it was not acknowledged, for a person. */
  readonly error: string | null;
}

/** The store answered what a relay told of the end of a naming. */
export interface SettleLine extends OfJob {
  readonly what: "settle";
  readonly outcome: Outcome["kind"];
  /** False: stale. */
  readonly written: boolean;
}

/** The relay told of a retry. */
export interface RetryLine extends OfJob {
  readonly what: "retry";
  readonly phase: DispatchPhase;
  readonly ambiguous: boolean;
}

/** The drill made a checkpoint fail. */
export interface DrillLine extends Written {
  readonly what: "drill";
  readonly phase: Exclude<DispatchPhase, "publish">;
  readonly jobs: readonly { readonly job: string; readonly token: number }[];
  /** It was done all the same, and only its answer lost. */
  readonly done: boolean;
}

/** A message reached a consumer. */
export interface ReceiveLine extends OfJob {
  readonly what: "receive";
  readonly attempt: number;
}

/** A receiver by HTTP answered: whether it took the message. */
export interface ReplyLine extends OfJob {
  readonly what: "reply";
  readonly taken: boolean;
}

export type RelayLine =
  | GrantLine
  | NameLine
  | PublishLine
  | AnswerLine
  | SettleLine
  | RetryLine
  | DrillLine
  | ReceiveLine
  | ReplyLine;
