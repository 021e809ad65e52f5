/** The screens in the order of the menu, each with the key that follows `g`. */
export const screens = [
  { path: "", name: "Overview", key: "o" },
  { path: "jobs", name: "Jobs", key: "j" },
  { path: "failures", name: "Failures", key: "f" },
  { path: "queues", name: "Queues", key: "q" },
  { path: "schedules", name: "Schedules", key: "s" },
  { path: "guarantees", name: "Guarantees", key: "u" },
  { path: "nodes", name: "Nodes and relay", key: "n" },
  { path: "audit", name: "Audit", key: "a" },
] as const;
