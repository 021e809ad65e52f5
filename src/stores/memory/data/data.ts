import type { NewAuditEntry } from "../../../store/audit.ts";
import type { SeenNode } from "../../../store/nodes.ts";
import { maxTrailLength, type TrailKind } from "../../../store/questions.ts";
import type { QueueConfig } from "../../../store/queues.ts";
import type { ScheduleRecord } from "../../../store/schedules.ts";
import type { RateWindow } from "../../limits.ts";
import type { HistoryRow } from "../history.ts";
import { Notices } from "../notices.ts";
import type { Row } from "../rows.ts";
import { byOrder, Indexes } from "./indexes.ts";
import { Sorted } from "./sorted.ts";

/** The last claim of a claimer, so repeating it repeats its answer. */
interface ClaimerRecord {
  readonly sequence: number;
  readonly claims: readonly { readonly id: string; readonly token: number }[];
}

/** An occurrence in the ledger; instants are numbers. */
export interface LedgerRow {
  readonly fireAt: number;
  readonly until: number | null;
  readonly count: number;
  readonly fate: "planned" | "skipped";
  readonly reason: string | null;
  readonly jobId: string | null;
  readonly plannedAt: number;
  readonly node: string;
}

/** An entry of the audit log. */
export interface AuditRow extends NewAuditEntry {
  readonly order: number;
  readonly at: number;
}

export interface Partition {
  readonly partition: number;
  readonly firstSlot: number;
  readonly endSlot: number;
  readonly owner: string | null;
  readonly epoch: number;
  /** On the monotonic clock. */
  readonly leaseUntil: number;
  readonly mark: number | null;
}

/** Everything that one namespace holds. */
export class Data {
  readonly namespace: string;
  readonly jobs = new Map<string, Row>();
  readonly inOrder = new Sorted<{ readonly order: number }, Row>(byOrder);
  readonly indexes = new Indexes();
  readonly notices = new Notices();
  /** Absorbed and debounced ids, with the job that each refers to. */
  readonly aliases = new Map<string, string>();
  /** The job that last took each unique key; its row says whether it still holds it. */
  readonly uniques = new Map<string, string>();
  readonly claimers = new Map<string, ClaimerRecord>();
  readonly windows = new Map<string, RateWindow>();
  readonly queues = new Map<string, QueueConfig>();
  readonly nodes = new Map<string, Omit<SeenNode, "alive">>();
  readonly schedules = new Map<string, ScheduleRecord>();
  /** Including deleted schedules, so no version is used twice. */
  readonly scheduleVersions = new Map<string, number>();
  readonly ledgers = new Map<string, Map<number, LedgerRow>>();
  /** By id. */
  readonly audit = new Map<string, AuditRow>();
  lastAudit = 0;
  /** By step, instant, queue and name. */
  readonly history = new Map<string, HistoryRow>();
  /** How far each node has written it, and when it last did. */
  readonly historyWriters = new Map<string, { readonly sequence: number; readonly at: number }>();
  partitions: Partition[] = [];
  wantedPartitions = 0;
  /** What committed transactions wrote. */
  readonly effects = new Map<string, unknown>();
  #lastOrder = 0;

  constructor(namespace: string) {
    this.namespace = namespace;
  }

  /** The job that an id refers to, directly or by an alias. */
  resolve(id: string): Row | undefined {
    return this.jobs.get(id) ?? this.jobs.get(this.aliases.get(id) ?? "");
  }

  nextOrder(): number {
    this.#lastOrder += 1;
    return this.#lastOrder;
  }

  insert(row: Row): void {
    this.jobs.set(row.id, row);
    this.inOrder.add(row);
    this.indexes.add(row);
    if (row.state === "waiting") this.notices.draft.claimable(row.queue);
  }

  /** The only way to change a row. */
  write(row: Row, change: Partial<Omit<Row, "id" | "order">>): void {
    const wasActive = row.state === "active";
    this.indexes.remove(row);
    Object.assign(row, change);
    this.indexes.add(row);
    if (row.state === "waiting") this.notices.draft.claimable(row.queue);
    if (wasActive && row.state !== "active") this.#noteFreed(row);
  }

  forget(row: Row): void {
    this.indexes.remove(row);
    this.jobs.delete(row.id);
    this.inOrder.delete(row);
    for (const alias of row.aliases) this.aliases.delete(alias);
    if (row.unique !== null && this.uniques.get(row.unique.key) === row.id)
      this.uniques.delete(row.unique.key);
  }

  /** Adds a line to the trail of a job, before the change that it describes is written. */
  tell(row: Row, now: number, kind: TrailKind, text: string | null, error: string | null = null): void {
    const { attempt, token, claimer } = row;
    row.trail.push({ at: new Date(now), kind, attempt, token, claimer, text, error });
    if (row.trail.length > maxTrailLength) row.trail.shift();
  }

  #noteFreed(row: Row): void {
    if (row.concurrencyKey !== null) this.notices.draft.claimableAnywhere();
    if ((this.queues.get(row.queue)?.concurrency ?? null) !== null) this.notices.draft.claimable(row.queue);
  }
}
