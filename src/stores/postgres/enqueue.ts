import { refuseAll } from "../../store/all-or-none.ts";
import type { EnqueueParams, EnqueueResult, NewJob } from "../../store/jobs.ts";
import { NoticeDraft } from "../notice-draft.ts";
import {
  boundJob,
  isBound,
  isSameKind,
  kindOf,
  numberList,
  textList,
  toJson,
  toMs,
} from "./connection/encode.ts";
import type { Value } from "./connection/link.ts";
import { addReported } from "./connection/reported-notices.ts";
import { refusedAnswers } from "./errors.ts";
import { numberOf, recordOf, textOf, tuplesOf } from "./rows.ts";
import type { Session } from "./session.ts";

/** If a batch alternates between bound and other jobs more often than this, all of it is enqueued as bound. */
const maxRuns = 20;

/** Jobs of a batch that one server function takes together. */
interface Part {
  readonly bound: boolean;
  readonly jobs: readonly NewJob[];
}

/** A statement with its values, built from function calls that run from left to right. */
class Statement {
  readonly values: Value[] = [];
  readonly #calls: string[] = [];

  call(make: (value: (one: Value, type: string) => string) => string): void {
    this.#calls.push(
      make((one, type) => {
        this.values.push(one);
        return `$${this.values.length}::${type}`;
      }),
    );
  }

  /** @param wrap the function that wraps the answers. */
  sql(wrap = ""): string {
    return `select ${wrap}(json_build_array(${this.#calls.join(", ")}))::text as answer`;
  }
}

/** Enqueues a batch in order, in one statement; with `allOrNone` it is undone if any part is refused. */
export async function enqueue(
  session: Session,
  { jobs, allOrNone, follows }: EnqueueParams,
): Promise<EnqueueResult[]> {
  if (jobs.length === 0) return [];
  const parts = partsOf(jobs);
  const statement = new Statement();
  for (const part of parts) addPart(statement, session, part, false);
  const sql = statement.sql(allOrNone ? `${session.functions}.all_or_none` : "");
  const draft = new NoticeDraft();
  await follows;
  try {
    if (parts.length === 1 && parts[0]?.bound === false) {
      // The queues are known before the answer; for an id that exists already, the notice is needless.
      const answers = await session.runAndTell(sql, statement.values, queuesOf(jobs).toNotices());
      return readAnswers(parts, answers, draft);
    }
    const results = readAnswers(parts, await session.run(sql, statement.values, parts.length === 1), draft);
    session.publish(draft.toNotices());
    return results;
  } catch (error) {
    const answers = refusedAnswers(error);
    if (answers === null) throw error;
    return refuseAll(jobs, readAnswers(parts, JSON.parse(answers), draft));
  }
}

/**
 * The same in the caller's own transaction. Its wake-up is part of the transaction too: other processes get it when it commits.
 *
 * @param notify the channel, and how to write the payload.
 */
export async function enqueueInside(
  session: Session,
  jobs: readonly NewJob[],
  notify: { readonly channel: string; readonly payload: (draft: NoticeDraft) => string },
): Promise<EnqueueResult[]> {
  if (jobs.length === 0) return [];
  const parts = partsOf(jobs);
  const statement = new Statement();
  statement.call(() => `${session.functions}.require_read_committed()`);
  for (const part of parts) addPart(statement, session, part, true);
  const payload = notify.payload(queuesOf(jobs));
  statement.call((value) => `pg_notify(${value(notify.channel, "text")}, ${value(payload, "text")})`);
  const answers = tuplesOrNulls(await session.run(statement.sql(), statement.values));
  return readAnswers(parts, answers.slice(1, -1), new NoticeDraft());
}

function queuesOf(jobs: readonly NewJob[]): NoticeDraft {
  const draft = new NoticeDraft();
  for (const { queue } of jobs) draft.claimable(queue);
  return draft;
}

function tuplesOrNulls(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function partsOf(jobs: readonly NewJob[]): readonly Part[] {
  const parts: { bound: boolean; jobs: NewJob[] }[] = [];
  for (const job of jobs) {
    const bound = isBound(job);
    const last = parts.at(-1);
    if (last?.bound === bound) last.jobs.push(job);
    else parts.push({ bound, jobs: [job] });
    if (parts.length > maxRuns) return [{ bound: true, jobs }];
  }
  return parts;
}

function addPart(statement: Statement, session: Session, { bound, jobs }: Part, open: boolean): void {
  const { functions, ns, now } = session;
  if (bound) {
    const list = toJson(jobs.map(boundJob));
    statement.call(
      (value) =>
        `${functions}.enqueue_bound(${value(ns, "integer")}, ${value(now, "bigint")}, ${value(list, "text")}::json, ${value(open, "boolean")})`,
    );
    return;
  }
  const { kinds, numbers } = kindsOf(jobs);
  const runAt = jobs.some((job) => job.runAt !== null)
    ? numberList(jobs.map((job) => toMs(job.runAt)))
    : null;
  const keyed = jobs.some((job) => job.concurrencyKey !== null || job.rateKey !== null);
  const expiring = jobs.some((job) => job.expireInMs !== null);
  statement.call(
    (value) =>
      `${functions}.enqueue_loose(${value(ns, "integer")}, ${value(now, "bigint")}, ${value(`[${kinds.join(",")}]`, "text")}::json,
        ${value(numberList(numbers), "text")}::integer[], ${value(textList(jobs.map(({ id }) => id)), "text")}::text[],
        ${value(textList(jobs.map(({ input }) => input)), "text")}::text[],
        ${value(numberList(jobs.map(({ slot }) => slot)), "text")}::integer[], ${value(runAt, "text")}::bigint[], ${value(keyed, "boolean")}, ${value(expiring, "boolean")})`,
  );
}

/** What the jobs have in common, each kind once, as JSON; and for each job the number of its kind, starting at 1. */
function kindsOf(jobs: readonly NewJob[]): { readonly kinds: readonly string[]; readonly numbers: number[] } {
  const known = new Map<string, number>();
  let last: { readonly job: NewJob; readonly number: number } | undefined;
  const numbers = jobs.map((job) => {
    // Neighbours are mostly alike, and comparing them is cheaper than serialising them.
    if (last !== undefined && isSameKind(job, last.job)) return last.number;
    const kind = toJson(kindOf(job));
    const number = known.get(kind) ?? known.size + 1;
    known.set(kind, number);
    last = { job, number };
    return number;
  });
  return { kinds: [...known.keys()], numbers };
}

function readAnswers(parts: readonly Part[], answers: unknown, draft: NoticeDraft): EnqueueResult[] {
  const list = tuplesOrNulls(answers);
  return parts.flatMap(({ bound, jobs }, index) =>
    bound ? readBound(list[index], draft) : readLoose(jobs, list[index], draft),
  );
}

/** Null, or a list of [place, id of the existing job]. */
function readLoose(jobs: readonly NewJob[], answer: unknown, draft: NoticeDraft): EnqueueResult[] {
  const existing = new Map(
    answer === null ? [] : tuplesOf(answer).map(([place, id]) => [numberOf(place), textOf(id)]),
  );
  return jobs.map(({ id, queue }, place) => {
    const known = existing.get(place);
    if (known !== undefined) return { id: known, outcome: "existing" };
    draft.claimable(queue);
    return { id, outcome: "added" };
  });
}

const outcomes = ["added", "existing", "absorbed", "debounced", "refused"] as const;

function readBound(answer: unknown, draft: NoticeDraft): EnqueueResult[] {
  const { results, notices: told } = recordOf(answer);
  addReported(draft, told);
  return tuplesOf(results).map(([said, id, missing]) => {
    const outcome = outcomes.find((one) => one === said) ?? "existing";
    return typeof missing === "string"
      ? { id: textOf(id), outcome, parent: missing }
      : { id: textOf(id), outcome };
  });
}
