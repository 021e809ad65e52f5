import assert from "node:assert/strict";
import { isTransient } from "../errors.ts";
import { until } from "./until.ts";

/** What loses replies: a proxy between the store and its server. */
interface Way {
  dropReplies(forMs: number): void;
  cut(): void;
}

/** No call takes this long; the fault ends with the cut. */
const longMs = 600_000;

/** Makes a call, lets it take effect, and loses its reply with the connection. Slow machines only make it slower. */
export async function loseReply(
  way: Way,
  call: () => Promise<unknown>,
  hasTakenEffect: () => Promise<boolean>,
): Promise<void> {
  way.dropReplies(longMs);
  const lost = call().catch((error: unknown) => assert(isTransient(error), String(error)));
  await until("the call has taken effect", hasTakenEffect);
  way.cut();
  await lost;
}
