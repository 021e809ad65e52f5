import type { DestinationState, NodeRecord, PartitionLag, RunningJob } from "../store/nodes.ts";

/**
 * A node's record, as stores keep it: JSON. One that cannot be read is a node that does nothing and counts as gone; a node that is alive
 * writes its record again with its next heartbeat.
 */
export function readNodeRecord(id: string, text: string): NodeRecord {
  try {
    const value: unknown = JSON.parse(text);
    if (isNodeRecord(value)) return { ...value, id };
  } catch {
    // Handled below.
  }
  return {
    id,
    host: "unreadable",
    pid: 0,
    version: "unreadable",
    roles: [],
    queues: [],
    names: [],
    concurrency: 0,
    active: 0,
    ttlMs: Number.NEGATIVE_INFINITY,
  };
}

function isNodeRecord(value: unknown): value is Omit<NodeRecord, "id"> {
  if (typeof value !== "object" || value === null) return false;
  const { host, pid, version, roles, queues, names, concurrency, active, ttlMs }: Partial<NodeRecord> = value;
  const { running = [], destinations = [], lags = [] }: Partial<NodeRecord> = value;
  return (
    [host, version].every((text) => typeof text === "string") &&
    [pid, concurrency, active, ttlMs].every((number) => typeof number === "number") &&
    [roles, names, queues ?? []].every(isTexts) &&
    Array.isArray(running) &&
    running.every(isRunning) &&
    Array.isArray(destinations) &&
    destinations.every(isDestination) &&
    Array.isArray(lags) &&
    lags.every(isLag)
  );
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every(isText);
}

function isRunning(value: Partial<RunningJob> | null): boolean {
  const { id, name, forMs, leaseMs } = value ?? {};
  return [id, name].every(isText) && [forMs, leaseMs].every(Number.isFinite);
}

function isDestination(value: Partial<DestinationState> | null): boolean {
  const { transport, destination, failures, error = 0 } = value ?? {};
  return [transport, destination, error ?? ""].every(isText) && Number.isFinite(failures);
}

function isLag(value: Partial<PartitionLag> | null): boolean {
  return [value?.partition, value?.lagMs].every(Number.isFinite);
}

function isText(value: unknown): boolean {
  return typeof value === "string";
}
