import type { RateWindow, Usage, UsageParams } from "../../store/queues.ts";
import { usedOf } from "../limits.ts";
import { Reader } from "./connection/wire.ts";
import type { Session } from "./session.ts";

/** A namespace that is spread over slots has no limits, and its active jobs are summed. */
export async function usage(
  session: Session,
  { queue, concurrencyKey, rateKey }: UsageParams,
): Promise<Usage> {
  const key = concurrencyKey === null ? "" : `k${concurrencyKey}`;
  const rate = rateKey === null ? "" : `k${rateKey}`;
  const answers = await Promise.all(
    session.everySlot.map((index) => session.list("usage", index, `q${queue}`, key, rate)),
  );
  const [time = Buffer.alloc(8), , , ofQueue, ofKey] = answers[0] ?? [];
  const now = new Reader(time).f64();
  const total = (place: number): number =>
    answers.reduce((sum, answer) => sum + (Number(String(answer[place] ?? "")) || 0), 0);
  return {
    now: new Date(now),
    activeInQueue: total(1),
    activeUnderKey: total(2),
    queueWindow: openWindow(ofQueue, now),
    keyWindow: openWindow(ofKey, now),
  };
}

function openWindow(packed: Buffer | undefined, now: number): RateWindow | null {
  if (packed === undefined || packed.length < 24) return null;
  const [startedAt = 0, used = 0, perMs = 0] = [0, 8, 16].map((place) => packed.readDoubleBE(place));
  return usedOf({ startedAt, used, perMs }, now);
}
