import type { Notice } from "../store/notices.ts";

/** What a store sends its listeners when it cannot know what they missed. */
export const anyNotice: readonly Notice[] = [
  { kind: "jobs", queues: null },
  { kind: "ended", ids: null },
  { kind: "schedules" },
  { kind: "queues" },
];

/**
 * Whether a value from outside the process is a notice. Anyone who reaches the channel can write to it, and another
 * version of this library may know other kinds.
 */
export function isNotice(value: unknown): value is Notice {
  if (typeof value !== "object" || value === null || !("kind" in value)) return false;
  const names = "ids" in value ? value.ids : "queues" in value ? value.queues : undefined;
  const isList = Array.isArray(names) && names.every((name) => typeof name === "string");
  switch (value.kind) {
    case "jobs":
      return "queues" in value && !("ids" in value) && (names === null || isList);
    case "ended":
      return "ids" in value && (names === null || isList);
    case "cancel":
      return "ids" in value && isList;
    default:
      return value.kind === "schedules" || value.kind === "queues";
  }
}
