import { instantOf } from "../../mend.ts";
import type { RateWindow, Usage, UsageParams } from "../../store.ts";
import type { Space } from "./space.ts";
import { Reader } from "./wire.ts";

/** Where a namespace is spread over slots, nothing has limits, and what is active adds up. */
export async function usage(space: Space, { queue, concurrencyKey, rateKey }: UsageParams): Promise<Usage> {
  const key = concurrencyKey === null ? "" : `k${concurrencyKey}`;
  const rate = rateKey === null ? "" : `k${rateKey}`;
  const answers = await Promise.all(
    space.everySlot.map((index) => space.list("usage", index, `q${queue}`, key, rate)),
  );
  const [time = Buffer.alloc(8), , , ofQueue, ofKey] = answers[0] ?? [];
  const now = new Reader(time).f64();
  const total = (place: number): number =>
    answers.reduce((sum, answer) => sum + Number(String(answer[place] ?? "") || 0), 0);
  return {
    now: new Date(now),
    activeInQueue: total(1),
    activeUnderKey: total(2),
    queueWindow: openWindow(ofQueue, now),
    keyWindow: openWindow(ofKey, now),
  };
}

function openWindow(packed: Buffer | undefined, now: number): RateWindow | null {
  if (packed === undefined || packed.length === 0) return null;
  const reader = new Reader(packed);
  const [startedAt, used, perMs] = [reader.f64(), reader.f64(), reader.f64()];
  if (now < startedAt || now >= startedAt + perMs) return null;
  return { startedAt: instantOf(startedAt), perMs, used };
}
