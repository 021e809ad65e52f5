import type { NodeRecord, SeenNode } from "../../store/nodes.ts";
import type { QueueChange, QueueConfig } from "../../store/queues.ts";
import { readNodeRecord } from "../node-record.ts";
import { toJson } from "./connection/encode.ts";
import type { Value } from "./connection/link.ts";
import { dateOf, listOf, numberOf, numberOrNull, recordOf, textOf, tuplesOf } from "./rows.ts";
import type { Session } from "./session.ts";

const columns = ["paused", "concurrency", "rate_limit", "rate_per_ms"] as const;

export async function configureQueue(session: Session, change: QueueChange): Promise<QueueConfig> {
  const given: Readonly<Record<(typeof columns)[number], Value | undefined>> = {
    paused: change.paused,
    concurrency: change.concurrency,
    rate_limit: change.rate === undefined ? undefined : (change.rate?.limit ?? null),
    rate_per_ms: change.rate === undefined ? undefined : (change.rate?.perMs ?? null),
  };
  const changed = columns.filter((column) => given[column] !== undefined);
  const table = `${session.schema}.queues`;
  const values: Value[] = [session.ns, change.queue, ...changed.map((column) => given[column] ?? null)];
  const places = changed.map((_, index) => `, $${index + 3}`).join("");
  // A missing field keeps its value; setting a column to itself makes an existing row come back.
  const set = ["queue", ...changed].map((column) => `${column} = excluded.${column}`).join(", ");
  const answer = await session.run(
    `with written as (
       insert into ${table} (ns, queue${changed.map((column) => `, ${column}`).join("")}) values ($1, $2${places})
       on conflict (ns, queue) do update set ${set} returning *)
     select json_build_array(queue, paused, concurrency, rate_limit, rate_per_ms)::text as answer from written`,
    values,
  );
  session.publish([{ kind: "jobs", queues: [change.queue] }, { kind: "queues" }]);
  return toQueue(listOf(answer));
}

export async function queues(session: Session): Promise<QueueConfig[]> {
  const answer = await session.run(
    `select coalesce(json_agg(json_build_array(queue, paused, concurrency, rate_limit, rate_per_ms) order by queue), '[]')::text as answer
     from ${session.schema}.queues where ns = $1`,
    [session.ns],
  );
  return tuplesOf(answer).map(toQueue);
}

function toQueue(row: readonly unknown[]): QueueConfig {
  const limit = numberOrNull(row[3]);
  const perMs = numberOrNull(row[4]);
  return {
    queue: textOf(row[0]),
    paused: row[1] === true,
    concurrency: numberOrNull(row[2]),
    rate: limit === null || perMs === null ? null : { limit, perMs },
  };
}

export async function putNode(session: Session, node: NodeRecord): Promise<void> {
  const now = `${session.functions}.now_ms($3::bigint)`;
  await session.run(
    `with written as (
       insert into ${session.schema}.nodes (ns, id, started_at, seen_at, record) values ($1, $2, ${now}, ${now}, $4)
       on conflict (ns, id) do update set seen_at = excluded.seen_at, record = excluded.record returning 1)
     select count(*)::text as answer from written`,
    [session.ns, node.id, session.now, toJson(node)],
  );
}

export async function removeNode(session: Session, { id }: { readonly id: string }): Promise<void> {
  await session.run(
    `with gone as (delete from ${session.schema}.nodes where ns = $1 and id = $2 returning 1)
     select count(*)::text as answer from gone`,
    [session.ns, id],
  );
}

export async function nodes(session: Session): Promise<SeenNode[]> {
  const { schema, functions } = session;
  const answer = await session.run(
    `select json_build_object('now', ${functions}.now_ms($2::bigint), 'nodes', (
       select coalesce(json_agg(json_build_array(id, started_at, seen_at, record) order by id), '[]') from ${schema}.nodes where ns = $1
     ))::text as answer`,
    [session.ns, session.now],
  );
  const { now, nodes: rows } = recordOf(answer);
  return tuplesOf(rows).map(([id, startedAt, seenAt, text]) => {
    const record = readNodeRecord(textOf(id), textOf(text));
    return {
      ...record,
      startedAt: dateOf(startedAt),
      seenAt: dateOf(seenAt),
      alive: numberOf(now) - numberOf(seenAt) <= record.ttlMs,
    };
  });
}
