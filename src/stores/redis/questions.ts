import { readCursor, writeCursor } from "../../cursor.ts";
import { groupCounts, isCounted } from "../../kept-counts.ts";
import { instantOf } from "../../mend.ts";
import type {
  CountParams,
  CountRow,
  JobFilter,
  ListParams,
  ListResult,
  StoredJob,
  TrailEntry,
  TrailKind,
} from "../../store.ts";
import { filterJson } from "./filter.ts";
import { type FoundJob, readStored, stateAt } from "./record.ts";
import { type Space, spread } from "./space.ts";
import { Reader } from "./wire.ts";

export function get(space: Space, ids: readonly string[]): Promise<(StoredJob | null)[]> {
  return spread(
    space,
    ids,
    (id) => space.placeOf(id),
    async (part, index) => {
      const reader = new Reader(await space.text("get", index, JSON.stringify(part)));
      const isThere = part.map(() => reader.u8() === 1);
      return isThere.map((there) => (there ? readStored(reader).job : null));
    },
  );
}

/** A seq before or behind all others. */
const before = 0;
const behind = Number.MAX_SAFE_INTEGER;

/** The first jobs of one Redis slot that match, behind a seq. A script looks at a bounded piece, so there may be several. */
async function searchSlot(
  space: Space,
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
    const reader = new Reader(await space.text("list", index, JSON.stringify(json)));
    cursor = reader.f64();
    while (!reader.isAtEnd) found.push(readStored(reader));
  } while (cursor !== 0 && found.length < limit);
  return found;
}

export async function list(space: Space, params: ListParams): Promise<ListResult> {
  const { limit, order, cursor } = params;
  const start = order === "newest" ? behind : before;
  const scope = { verb: "list", order, namespace: space.keyPrefix(0) } as const;
  const from = cursor === null ? [] : readCursor(scope, cursor, space.slots);
  const perSlot = await Promise.all(
    space.everySlot.map((index) => searchSlot(space, index, params, from[index] ?? start, limit + 1)),
  );
  const merged = perSlot.flatMap((found, index) => found.map((one) => ({ ...one, index })));
  const sign = order === "newest" ? -1 : 1;
  // Slots know nothing of each other's order; within one, it is the order of enqueueing.
  if (space.slots > 1) {
    merged.sort(
      (a, b) =>
        sign *
        (a.job.enqueuedAt.getTime() - b.job.enqueuedAt.getTime() || a.index - b.index || a.seq - b.seq),
    );
  }
  const page = merged.slice(0, limit);
  const jobs = page.map(({ job }) => job);
  if (merged.length <= limit) return { jobs, cursor: null };
  const next = space.everySlot.map(
    (index) => page.findLast((one) => one.index === index)?.seq ?? from[index] ?? start,
  );
  return { jobs, cursor: writeCursor(scope, next) };
}

export async function count(space: Space, params: CountParams): Promise<CountRow[]> {
  const parts = await Promise.all(space.everySlot.map((index) => countSlot(space, index, params.filter)));
  return groupCounts(parts.flat(), params);
}

async function countSlot(space: Space, index: number, filter: JobFilter): Promise<Required<CountRow>[]> {
  const groups: Required<CountRow>[] = [];
  let cursor = before;
  do {
    const json = isCounted(filter) ? {} : { filter: filterJson(filter), cursor };
    const reader = new Reader(await space.text("count", index, JSON.stringify(json)));
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

/** The scripts count kinds from 1, in this order. */
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

export async function trail(space: Space, id: string): Promise<TrailEntry[]> {
  const lines = await space.list("trail", space.placeOf(id), id);
  return lines.map((line) => {
    const reader = new Reader(line);
    const at = instantOf(reader.f64());
    const kind = trailKinds[reader.u8() - 1] ?? "log";
    const [attempt, token, claimer] = [reader.u32(), reader.u32(), reader.short()];
    const [text, error] = [reader.marked(), reader.marked()];
    return { at, kind, attempt, token, claimer: claimer === "" ? null : claimer, text, error };
  });
}
