import type { RateWindow, Usage, UsageParams } from "../../store.ts";
import { keyWindow, queueWindow } from "./limits.ts";
import type { Space } from "./space.ts";

export function usage(space: Space, { queue, concurrencyKey, rateKey }: UsageParams, now: number): Usage {
  return {
    now: new Date(now),
    activeInQueue: space.indexes.activeInQueue(queue),
    activeUnderKey: concurrencyKey === null ? 0 : space.indexes.activeUnderKey(concurrencyKey),
    queueWindow: openWindow(space, queueWindow(queue), now),
    keyWindow: rateKey === null ? null : openWindow(space, keyWindow(rateKey), now),
  };
}

function openWindow(space: Space, key: string, now: number): RateWindow | null {
  const window = space.windows.get(key);
  if (window === undefined || now < window.startedAt || now >= window.startedAt + window.perMs) return null;
  return { startedAt: new Date(window.startedAt), perMs: window.perMs, used: window.count };
}
