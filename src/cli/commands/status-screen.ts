import type { Failures } from "../../operations/failures.ts";
import type { Overview } from "../../operations/operations.ts";
import { type Line, Painted, table } from "../output.ts";
import type { Rates } from "../rates.ts";
import { sparkline } from "../sparkline.ts";
import { away, short } from "../times.ts";
import { busy } from "./nodes.ts";

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  readonly title: string;
}

/** In a table a cell gives way where the screen is narrow, but never below 8 columns: its end is the newest. */
function sparkWidth(columns: number): number {
  if (columns >= 100) return 20;
  return columns >= 80 ? 10 : 8;
}

/** What fails most, the largest group first. */
export function failureLines({ groups, isPartial }: Failures, now: Date, most: number): Line[] {
  const rows = groups
    .slice(0, most)
    .map(({ count, state, name, lastAt, shape }) => [count, state, name, away(lastAt, now), shape]);
  const more = groups.length > most ? [`… and ${groups.length - most} more kinds of failures`] : [];
  return [
    ...table(
      ["failed", "", "job", "last", isPartial ? "what went wrong (of the newest)" : "what went wrong"],
      rows,
    ),
    ...more,
  ];
}

/** All that fits on a screen: what matters most comes first, and each part gives way to the next. */
export function screenLines(overview: Overview, rates: Rates, screen: Screen): Line[] {
  const { now, queues, nodes, failures } = overview;
  const rateWidth = screen.columns >= 80 ? 20 : 8;
  const head: Line[] = [
    [
      new Painted(screen.title, "bold"),
      `  ${now.toISOString().slice(11, 19)}Z`,
      new Painted("  q quits", "dim"),
    ],
    [
      "done/s ",
      new Painted(sparkline(rates.succeeded, rateWidth), "green"),
      ` ${figure(rates.succeeded)}   failed/s `,
      new Painted(sparkline(rates.failed, rateWidth), "red"),
      ` ${figure(rates.failed)}`,
    ],
    "",
  ];
  const room = Math.max(6, screen.rows - head.length - 1);
  const nodeRows = Math.min(nodes.length, Math.max(1, Math.floor(room / 4)));
  const failureRows = Math.min(failures.groups.length, Math.max(1, Math.floor(room / 4)));
  const queueRows = Math.max(1, room - nodeRows - failureRows - 6);
  const lines = [
    ...head,
    ...queueLines(overview, rates, queueRows, screen.columns),
    "",
    ...(failures.groups.length === 0 ? ["nothing has failed"] : failureLines(failures, now, failureRows)),
    "",
    ...nodeLines(overview, nodeRows),
  ];
  return queues.length + nodes.length === 0
    ? [...head, "no jobs wait, and no node is alive"]
    : lines.slice(0, screen.rows - 1);
}

function figure(rates: readonly number[]): string {
  const last = rates.at(-1) ?? 0;
  return last >= 100 ? last.toFixed(0) : last.toFixed(1);
}

/** The queues with most to do. */
function queueLines({ queues }: Overview, rates: Rates, most: number, columns: number): Line[] {
  if (queues.length === 0) return ["no jobs wait"];
  const sorted = queues.toSorted((a, b) => b.due - a.due || b.active - a.active);
  const rows = sorted
    .slice(0, most)
    .map((queue) => [
      queue.queue,
      queue.due,
      sparkline(rates.due.get(queue.queue) ?? [], sparkWidth(columns)),
      queue.oldestDueMs === null ? "" : short(queue.oldestDueMs),
      queue.later,
      queue.active,
      queue.blocked,
      queue.paused ? new Painted("paused", "yellow") : "",
    ]);
  const more = sorted.length > most ? [`… and ${sorted.length - most} more queues`] : [];
  const importance = ["queue", "due", "", "oldest", "active", "later"];
  return [
    ...table(["queue", "due", "", "oldest", "later", "active", "blocked", ""], rows, { importance }),
    ...more,
  ];
}

function nodeLines({ nodes, now }: Overview, most: number): Line[] {
  if (nodes.length === 0) return [[new Painted("no node is alive", "red")]];
  const sorted = nodes.toSorted((a, b) => Number(a.alive) - Number(b.alive));
  const rows = sorted
    .slice(0, most)
    .map((node) => [
      node.id,
      node.alive
        ? "alive"
        : new Painted(`silent since ${short(now.getTime() - node.seenAt.getTime())}`, "red"),
      node.roles.join("+"),
      busy(node),
    ]);
  const more = sorted.length > most ? [`… and ${sorted.length - most} more nodes`] : [];
  return [...table(["node", "", "roles", "busy"], rows), ...more];
}
