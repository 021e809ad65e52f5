import type { NodeRecord } from "./store.ts";

/**
 * What a node told of itself, as stores keep it: JSON. What cannot be read is a node that does nothing and counts as gone; one that is alive
 * writes its record anew with its next heartbeat.
 */
export function readNodeRecord(id: string, text: string): NodeRecord {
  try {
    const value: unknown = JSON.parse(text);
    if (isNodeRecord(value)) return { ...value, id };
  } catch {
    // Told below.
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
  return (
    [host, version].every((text) => typeof text === "string") &&
    [pid, concurrency, active, ttlMs].every((number) => typeof number === "number") &&
    [roles, names, queues ?? []].every(isTexts)
  );
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
