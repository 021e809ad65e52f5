import type { StoredJob } from "../../store/jobs.ts";
import type {
  CountParams,
  CountRow,
  JobFilter,
  ListParams,
  ListResult,
  TrailEntry,
  TrailKind,
} from "../../store/questions.ts";
import { instantOf } from "../../unreadable.ts";
import { readCursor, writeCursor } from "../cursor.ts";
import { groupCounts, isCounted } from "../kept-counts.ts";
import { Reader } from "./connection/wire.ts";
import { filterJson } from "./jobs/filter.ts";
import { type FoundJob, readStored, stateAt } from "./rows.ts";
import { type Session, spread } from "./session.ts";

export function get(
  session: Session,
  { ids }: { readonly ids: readonly string[] },
): Promise<(StoredJob | null)[]> {
  return spread(
    session,
    ids,
    (id) => session.placeOf(id),
    async (part, index) => {
      const reader = new Reader(await session.text("get", index, JSON.stringify(part)));
      const isThere = part.map(() => reader.u8() === 1);
      return isThere.map((there) => (there ? readStored(reader).job : null));
    },
  );
}

/** A seq before or after all others. */
const before = 0;
const behind = Number.MAX_SAFE_INTEGER;

/** The first jobs of one Redis slot that match, after a seq. A script looks at a bounded piece, so it may take several calls. */
async function searchSlot(
  session: Session,
  index: number,
  { filter, order }: Pick<ListParams, "filter" | "order">,
  from: number,
  limit: number,
): Promise<FoundJob[]> {
  const found: FoundJob[] = [];
  let cursor = from;
  do {
    const json = {
      filter: filterJson(filter),
      limit: limit - found.length,
      newest: order === "newest",
      cursor,
    };
    const reader = new Reader(await session.text("list", index, JSON.stringify(json)));
    cursor = reader.f64();
    while (!reader.isAtEnd) found.push(readStored(reader));
  } while (cursor !== 0 && found.length < limit);
  return found;
}

export async function list(session: Session, params: ListParams): Promise<ListResult> {
  const { limit, order, cursor } = params;
  const start = order === "newest" ? behind : before;
  const scope = { verb: "list", order, namespace: session.keyPrefix(0) } as const;
  const from = cursor === null ? [] : readCursor(scope, cursor, session.slots);
  const perSlot = await Promise.all(
    session.everySlot.map((index) => searchSlot(session, index, params, from[index] ?? start, limit + 1)),
  );
  const merged = perSlot.flatMap((found, index) => found.map((one) => ({ ...one, index })));
  const sign = order === "newest" ? -1 : 1;
  // Slots do not know each other's order; within one, it is enqueue order.
  if (session.slots > 1) {
    merged.sort(
      (a, b) =>
        sign *
        (a.job.enqueuedAt.getTime() - b.job.enqueuedAt.getTime() || a.index - b.index || a.seq - b.seq),
    );
  }
  const page = merged.slice(0, limit);
  const jobs = page.map(({ job }) => job);
  if (merged.length <= limit) return { jobs, cursor: null };
  const next = session.everySlot.map(
    (index) => page.findLast((one) => one.index === index)?.seq ?? from[index] ?? start,
  );
  return { jobs, cursor: writeCursor(scope, next) };
}

export async function count(session: Session, params: CountParams): Promise<CountRow[]> {
  const parts = await Promise.all(session.everySlot.map((index) => countSlot(session, index, params.filter)));
  return groupCounts(parts.flat(), params);
}

async function countSlot(session: Session, index: number, filter: JobFilter): Promise<Required<CountRow>[]> {
  const groups: Required<CountRow>[] = [];
  let cursor = before;
  do {
    const json = isCounted(filter) ? {} : { filter: filterJson(filter), cursor };
    const reader = new Reader(await session.text("count", index, JSON.stringify(json)));
    cursor = reader.f64();
    while (!reader.isAtEnd) {
      const amount = reader.f64();
      groups.push({
        state: stateAt(reader.u8()),
        queue: reader.short(),
        name: reader.short(),
        count: amount,
      });
    }
  } while (cursor !== 0);
  return groups;
}

/** The scripts number kinds from 1, in this order. */
const trailKinds = [
  "failed",
  "crashed",
  "snoozed",
  "rolled-back",
  "cancel-requested",
  "updated",
  "redriven",
  "log",
  "result-not-kept",
] as const satisfies TrailKind[];

export async function trail(session: Session, { id }: { readonly id: string }): Promise<TrailEntry[]> {
  const lines = await session.list("trail", session.placeOf(id), id);
  return lines.map((line) => {
    try {
      return readLine(new Reader(line));
    } catch {
      const text = "unreadable: something else has written to this line";
      return { at: new Date(0), kind: "log", attempt: 0, token: 0, claimer: null, text, error: null };
    }
  });
}

function readLine(reader: Reader): TrailEntry {
  const at = instantOf(reader.f64());
  const kind = trailKinds[reader.u8() - 1] ?? "log";
  const [attempt, token, claimer] = [reader.u32(), reader.u32(), reader.short()];
  const [text, error] = [reader.marked(), reader.marked()];
  return { at, kind, attempt, token, claimer: claimer === "" ? null : claimer, text, error };
}
