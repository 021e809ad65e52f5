import type { RateWindow, Usage, UsageParams } from "../../store/queues.ts";
import { usedOf } from "../limits.ts";
import { numberOf } from "./rows.ts";
import type { Session } from "./session.ts";

export function usage(session: Session, { queue, concurrencyKey, rateKey }: UsageParams): Usage {
  const { connection, ns, now } = session;
  const active = (column: "queue" | "concurrency_key", value: string): number => {
    const row = connection.get(
      `select count(*) as count from escapement_active where ns = ? and ${column} = ? and relayed = 0`,
      ns,
      value,
    );
    return numberOf(row?.["count"]);
  };
  return {
    now: new Date(now),
    activeInQueue: active("queue", queue),
    activeUnderKey: concurrencyKey === null ? 0 : active("concurrency_key", concurrencyKey),
    queueWindow: openWindow(session, "queue", queue),
    keyWindow: rateKey === null ? null : openWindow(session, "key", rateKey),
  };
}

function openWindow({ connection, ns, now }: Session, kind: "queue" | "key", key: string): RateWindow | null {
  const row = connection.get(
    "select started_at, per_ms, used from escapement_windows where ns = ? and kind = ? and key = ?",
    ns,
    kind,
    key,
  );
  if (row === undefined) return null;
  const [startedAt, used, perMs] = [
    numberOf(row["started_at"]),
    numberOf(row["used"]),
    numberOf(row["per_ms"]),
  ];
  return usedOf({ startedAt, used, perMs }, now);
}
