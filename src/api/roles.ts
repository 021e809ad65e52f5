/** What a caller may do. Each role includes the ones before it. */
export type Role = "read" | "operate" | "admin";

export const roles = ["read", "operate", "admin"] as const satisfies Role[];

/**
 * Who may call which route: the only place that says so. `read` looks; `operate` does what a person on call does with jobs, and can undo;
 * `admin` takes away, and changes rules and limits. `anyone` needs no credentials, and learns nothing more than yes or no.
 */
export const roleOf = {
  "GET /me": "read",
  "GET /overview": "read",
  "GET /counts": "read",
  "GET /definitions": "read",
  "GET /history": "read",
  "GET /health": "read",
  "GET /nodes": "read",
  "GET /partitions": "read",
  "GET /audit": "read",
  "GET /verify": "read",
  "GET /openapi.json": "read",
  "GET /healthz": "anyone",
  "GET /readyz": "anyone",

  "GET /jobs": "read",
  "POST /jobs": "operate",
  "GET /jobs/{id}": "read",
  "GET /jobs/{id}/result": "read",
  "GET /jobs/{id}/children": "read",
  "GET /jobs/{id}/events": "read",
  "PATCH /jobs/{id}": "operate",
  "DELETE /jobs/{id}": "admin",
  "POST /jobs/{id}/cancel": "operate",
  "POST /jobs/{id}/redrive": "operate",
  "POST /jobs/{id}/run-now": "operate",

  "POST /jobs/cancel": "operate",
  "POST /jobs/redrive": "operate",
  "POST /jobs/delete": "admin",
  "POST /jobs/run-now": "operate",
  "POST /jobs/priority": "operate",
  "GET /tasks": "read",
  "GET /tasks/{id}": "read",
  "POST /tasks/{id}/stop": "operate",

  "GET /failures": "read",
  "POST /failures/{fingerprint}/redrive": "operate",

  "GET /queues": "read",
  "GET /queues/{queue}/oldest": "read",
  "PATCH /queues/{queue}": "admin",
  "POST /queues/{queue}/pause": "operate",
  "POST /queues/{queue}/resume": "operate",

  "GET /schedules": "read",
  "GET /schedules/{key}": "read",
  "POST /schedules/preview": "read",
  "PUT /schedules/{key}": "admin",
  "PATCH /schedules/{key}": "admin",
  "DELETE /schedules/{key}": "admin",
  "GET /schedules/{key}/next": "read",
  "GET /schedules/{key}/occurrences": "read",
  "POST /schedules/{key}/pause": "operate",
  "POST /schedules/{key}/resume": "operate",
  "POST /schedules/{key}/trigger": "operate",
  "POST /schedules/{key}/backfill": "operate",

  "GET /events/ended": "read",
  "GET /events/queues": "read",
} as const satisfies Readonly<Record<string, Role | "anyone">>;

/** A method and a path: `GET /jobs`. */
export type RouteName = keyof typeof roleOf;

/** Stands for callers without credentials. No token and no `authorize` gives this name. */
export const anyone = { actor: "", role: "read" } as const;

/** Whether a route answers without credentials. */
export function isOpen(route: string): boolean {
  return Object.entries(roleOf).some(([name, role]) => name === route && role === "anyone");
}

export function mayDo(role: Role, needed: Role | "anyone"): boolean {
  if (needed === "anyone") return true;
  return roles.indexOf(role) >= roles.indexOf(needed);
}
