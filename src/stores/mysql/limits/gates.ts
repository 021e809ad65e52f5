import type { Link } from "../connection/link.ts";
import { fixed, join, now, sql } from "../connection/sql.ts";
import { numberOf, numberOrNull, textOf } from "../rows.ts";
import type { Session } from "../session.ts";

/** The jobs of one queue and name in one lane. */
export interface Gate {
  readonly lane: string;
  readonly queue: string;
  readonly name: string;
}

/** What others did to lanes since the last claim that looked. */
export interface Hint extends Gate {
  readonly hint: number;
  readonly kind: string;
  readonly at: number;
}

/** How many hints one claim processes; the next one takes the rest. */
const maxHints = 10_000;

export async function readHints(link: Link, ns: number): Promise<Hint[]> {
  const { rows } = await link.query(
    sql`select hint, kind, lane, queue, name, at from escapement_hints where ns = ${ns} order by hint limit ${maxHints}`,
  );
  return rows.map((row) => ({
    hint: numberOf(row[0]),
    kind: textOf(row[1]),
    lane: textOf(row[2]),
    queue: textOf(row[3]),
    name: textOf(row[4]),
    at: numberOf(row[5]),
  }));
}

/** Opens the gates that hints refer to. Only a claim that holds the namespace's lock may do this. */
export function takeInHints(session: Session, hints: readonly Hint[]): void {
  if (hints.length === 0) return;
  const { link, ns } = session;
  const arrived = new Map<string, Hint>();
  const lanes = { freed: new Set<string>(), changed: new Set<string>() };
  for (const hint of hints) {
    if (hint.kind === "arrived") {
      const key = JSON.stringify([hint.lane, hint.queue, hint.name]);
      const known = arrived.get(key);
      if (known === undefined || hint.at < known.at) arrived.set(key, hint);
    } else {
      lanes[hint.kind === "freed" ? "freed" : "changed"].add(hint.lane);
    }
  }
  openArrived(session, [...arrived.values()]);
  if (lanes.freed.size > 0) {
    link.write(
      sql`update escapement_gates set ready_at = ${now}, concurrency_limit = null
        where ns = ${ns} and lane in (${[...lanes.freed]}) and ready_at is null and concurrency_limit is not null`,
    );
  }
  if (lanes.changed.size > 0) openChanged(session, [...lanes.changed]);
  link.write(sql`delete from escapement_hints where hint in (${hints.map(({ hint }) => hint)})`);
}

/** Jobs started to wait behind gates. While the lane's key is saturated, that changes nothing. */
function openArrived({ link, ns }: Session, arrived: readonly Hint[]): void {
  if (arrived.length === 0) return;
  const rows = arrived.map(({ lane, queue, name, at }) => sql`(${ns}, ${lane}, ${queue}, ${name}, ${at})`);
  link.write(
    sql`insert into escapement_gates (ns, lane, queue, name, ready_at) values ${join(rows, ", ")}
      on duplicate key update ready_at = if(ready_at is not null or concurrency_limit is null,
        least(coalesce(ready_at, values(ready_at)), values(ready_at)), ready_at)`,
  );
}

/** A job left the lane or changed its place: another may be first now. Checking is cheap, missing it is not. */
export function openChanged({ link, ns }: Session, lanes: readonly string[]): void {
  link.write(
    sql`update escapement_gates set ready_at = ${now} where ns = ${ns} and lane in (${lanes})
      and (ready_at > ${now} or (ready_at is null and concurrency_limit is null))`,
  );
}

/** @param readyAt null: nothing behind the gate can go before the lane changes, or, with a limit, before an active job ends. */
export function setGate(session: Session, gate: Gate, readyAt: number | null, limit: number | null): void {
  session.link.write(
    sql`update escapement_gates set ready_at = ${readyAt}, concurrency_limit = ${limit} where ${isGate(session, gate)}`,
  );
}

/** No more jobs wait behind the gate. */
export function removeGate(session: Session, gate: Gate): void {
  session.link.write(sql`delete from escapement_gates where ${isGate(session, gate)}`);
}

function isGate({ ns }: Session, { lane, queue, name }: Gate) {
  return sql`ns = ${ns} and lane = ${lane} and queue = ${queue} and name = ${name}`;
}

export interface Group {
  readonly queue: string;
  readonly name: string;
}

/** The queues and names that have gates: one index step for each. */
export async function gateGroups(link: Link, ns: number): Promise<Group[]> {
  const { rows } = await link.query(
    sql`select distinct queue, name from escapement_gates force index (escapement_gates_ready) where ns = ${ns}`,
  );
  return rows.map((row) => ({ queue: textOf(row[0]), name: textOf(row[1]) }));
}

const byReadiness = fixed("escapement_gates force index (escapement_gates_ready)");

/** The ready gates of a group, longest ready first; and closed ones whose limit was lower than this claimer's. */
export async function readyGates(
  { link, ns }: Session,
  { queue, name }: Group,
  limit: number,
  keyConcurrency: number,
): Promise<Gate[]> {
  const [ready, widened] = await Promise.all([
    link.query(
      sql`select lane from ${byReadiness} where ns = ${ns} and queue = ${queue} and name = ${name} and ready_at <= ${now}
        order by ready_at limit ${limit}`,
    ),
    link.query(
      sql`select lane from ${byReadiness} where ns = ${ns} and queue = ${queue} and name = ${name} and ready_at is null
        and concurrency_limit < ${Math.min(keyConcurrency, Number.MAX_SAFE_INTEGER)} limit ${limit}`,
    ),
  ]);
  return [...ready.rows, ...widened.rows].map((row) => ({ lane: textOf(row[0]), queue, name }));
}

/** When the next gate of the group is ready: at or before now for a ready one, infinity if time alone opens none. */
export async function nextReady({ link, ns }: Session, { queue, name }: Group): Promise<number> {
  const { rows } = await link.query(
    sql`select min(ready_at) from ${byReadiness} where ns = ${ns} and queue = ${queue} and name = ${name} and ready_at is not null`,
  );
  return numberOrNull(rows[0]?.[0] ?? null) ?? Number.POSITIVE_INFINITY;
}
