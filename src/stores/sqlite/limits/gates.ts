import type { Session } from "../session.ts";

/** The jobs of one queue and name in one lane. */
export interface Gate {
  readonly lane: string;
  readonly queue: string;
  readonly name: string;
}

/** A job started to wait behind the gate. While the lane's key is saturated, that changes nothing. */
export function openGate({ connection, ns }: Session, gate: Gate, at: number): void {
  connection.run(
    `insert into escapement_gates (ns, lane, queue, name, ready_at) values (?, ?, ?, ?, ?)
     on conflict do update set ready_at = min(coalesce(ready_at, excluded.ready_at), excluded.ready_at)
     where ready_at is not null or concurrency_limit is null`,
    ns,
    gate.lane,
    gate.queue,
    gate.name,
    at,
  );
}

/** An active job with the lane's key ended: there may be room again. */
export function openSaturated({ connection, ns, now }: Session, lane: string): void {
  connection.run(
    `update escapement_gates set ready_at = ?, concurrency_limit = null
     where ns = ? and lane = ? and ready_at is null and concurrency_limit is not null`,
    now,
    ns,
    lane,
  );
}

/** A job left the lane or changed its place: another may be first now. Checking is cheap, missing it is not. */
export function openChanged({ connection, ns, now }: Session, lane: string): void {
  connection.run(
    `update escapement_gates set ready_at = ?
     where ns = ? and lane = ? and (ready_at > ? or ready_at is null and concurrency_limit is null)`,
    now,
    ns,
    lane,
    now,
  );
}

/** Nothing behind the gate can go before `readyAt`; null: before the lane changes. */
export function timeGate({ connection, ns }: Session, gate: Gate, readyAt: number | null): void {
  setGate(connection, ns, gate, readyAt, null);
}

/** As many jobs with the lane's key are active as the claimer allows. */
export function closeSaturated({ connection, ns }: Session, gate: Gate, limit: number): void {
  setGate(connection, ns, gate, null, limit);
}

function setGate(
  connection: Session["connection"],
  ns: number,
  gate: Gate,
  readyAt: number | null,
  limit: number | null,
): void {
  connection.run(
    `update escapement_gates set ready_at = ?, concurrency_limit = ?
     where ns = ? and lane = ? and queue = ? and name = ?`,
    readyAt,
    limit,
    ns,
    gate.lane,
    gate.queue,
    gate.name,
  );
}

/** No more jobs wait behind the gate. */
export function removeGate({ connection, ns }: Session, gate: Gate): void {
  connection.run(
    "delete from escapement_gates where ns = ? and lane = ? and queue = ? and name = ?",
    ns,
    gate.lane,
    gate.queue,
    gate.name,
  );
}
