import type { RateWindow, Usage, UsageParams } from "../../store/queues.ts";
import { usedOf } from "../limits.ts";
import type { Data } from "./data/data.ts";
import { keyWindow, queueWindow } from "./limits.ts";
import type { Session } from "./session.ts";

export function usage({ data, now }: Session, { queue, concurrencyKey, rateKey }: UsageParams): Usage {
  return {
    now: new Date(now),
    activeInQueue: data.indexes.activeInQueue(queue),
    activeUnderKey: concurrencyKey === null ? 0 : data.indexes.activeUnderKey(concurrencyKey),
    queueWindow: openWindow(data, queueWindow(queue), now),
    keyWindow: rateKey === null ? null : openWindow(data, keyWindow(rateKey), now),
  };
}

function openWindow(data: Data, key: string, now: number): RateWindow | null {
  const window = data.windows.get(key);
  return window === undefined ? null : usedOf(window, now);
}
