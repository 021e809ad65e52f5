import type { AnyDefinition } from "../definition.ts";
import { EscapementError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { retrySpanMs } from "../retry.ts";
import type { Settings } from "../settings.ts";
import type { Capabilities } from "../store/opening.ts";

/** Refuses, before anything runs, a guarantee that this store cannot give. */
export function checkDeliveries(
  definitions: Iterable<AnyDefinition>,
  capabilities: Capabilities,
  settings: Pick<Settings, "acceptWeakDurability" | "inbox" | "attempts" | "retention">,
  log: Logger,
): void {
  for (const definition of definitions) {
    const { name, delivery, run, route } = definition;
    const job = `job ${JSON.stringify(name)}`;
    const key = (["unique", "debounce", "concurrency", "rate"] as const).find(
      (one) => definition[one] !== null,
    );
    if (key !== undefined && !capabilities.acrossSlots) {
      throw new EscapementError(
        "store-unsupported",
        `${job} has ${key}, and this store's namespace is spread over separate slots; use one slot, or leave it out`,
      );
    }
    // The effect of a routed job commits at its consumer, with the consumer's inbox.
    const isEffectHere = delivery === "effectively-once" && route === null;
    if (isEffectHere && !capabilities.transactions && settings.inbox?.atomic !== true) {
      throw new EscapementError(
        "delivery-unsupported",
        `${job} is effectively-once, and this store has no transactions in which its effect could commit; give the app an SQL inbox (createInbox), use an SQL store, or at-least-once`,
      );
    }
    if (isEffectHere && !capabilities.transactions) checkMemory(definition, settings, log);
    if (isEffectHere && run instanceof URL) {
      throw new EscapementError(
        "delivery-unsupported",
        `${job} is effectively-once and runs in a thread, where there is no tx; run it inline, or use at-least-once`,
      );
    }
    if (capabilities.durability !== "weak") continue;
    if (delivery === "at-most-once" && !settings.acceptWeakDurability) {
      throw new EscapementError(
        "weak-durability",
        `${job} is at-most-once, and this store may forget a claim after a power failure, and dispatch the job again; make the store durable, or set acceptWeakDurability: true`,
      );
    }
    if (delivery !== "at-most-once") {
      log.warn({ job: name }, "this store may forget acknowledged jobs after a power failure");
    }
  }
}

/** An inbox that forgets a key while the job may still be dispatched lets its effect happen again. */
function checkMemory(
  { name, attempts, backoff, retention: own }: AnyDefinition,
  { inbox, retention, attempts: usual }: Pick<Settings, "inbox" | "attempts" | "retention">,
  log: Logger,
): void {
  const remembers = inbox?.retentionMs ?? 0;
  const spanMs = retrySpanMs(backoff, attempts ?? usual);
  if (remembers <= spanMs) {
    throw new EscapementError(
      "invalid-option",
      `expected the inbox's retentionMs to be more than the retries of job ${JSON.stringify(name)} may take (${spanMs}), got ${remembers}`,
    );
  }
  const redrivableMs = Math.max(own?.deadMs ?? retention.deadMs, own?.lostMs ?? retention.lostMs);
  if (remembers <= redrivableMs) {
    log.warn(
      { job: name, inboxRetentionMs: remembers, redrivableMs },
      "a job that is redriven after the inbox has forgotten its key may take effect again",
    );
  }
}
