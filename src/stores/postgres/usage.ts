import type { RateWindow, Usage, UsageParams } from "../../store/queues.ts";
import { dateOf, listOf, numberOf, recordOf } from "./rows.ts";
import type { Session } from "./session.ts";

export async function usage(session: Session, params: UsageParams): Promise<Usage> {
  const { schema, functions, ns, now } = session;
  const window = `select json_build_array(started_at, per_ms, used) from ${schema}.windows, clock
    where ns = $1 and clock.now >= started_at and clock.now < started_at + per_ms`;
  const answer = await session.run(
    `with clock as (select ${functions}.now_ms($2::bigint) as now)
     select json_build_object(
       'now', (select now from clock),
       'inQueue', ${functions}.active_in_queue($1, $3, null),
       'underKey', (select count(*) from ${schema}.active
         where ns = $1 and concurrency_key = $4::text and concurrency_key is not null and not relayed),
       'queueWindow', (${window} and kind = 'queue' and key = $3),
       'keyWindow', (${window} and kind = 'key' and key = $5::text))::text as answer`,
    [ns, now, params.queue, params.concurrencyKey, params.rateKey],
  );
  const found = recordOf(answer);
  return {
    now: dateOf(found["now"]),
    activeInQueue: numberOf(found["inQueue"]),
    activeUnderKey: numberOf(found["underKey"]),
    queueWindow: toWindow(found["queueWindow"]),
    keyWindow: toWindow(found["keyWindow"]),
  };
}

function toWindow(value: unknown): RateWindow | null {
  if (value === null) return null;
  const [startedAt, perMs, used] = listOf(value);
  return { startedAt: dateOf(startedAt), perMs: numberOf(perMs), used: numberOf(used) };
}
