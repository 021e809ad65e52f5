import type { Command } from "commander";
import { serveCommand } from "../serve.ts";

/** Where the dashboard usually is. */
export const dashboardPort = 3_811;

export function apiCommand(): Command {
  return serveCommand({
    name: "api",
    about: "serve the HTTP API until Ctrl-C or SIGTERM",
    what: "the API",
    port: 3_810,
    // Loaded on demand: no other command needs it.
    create: async (app, options) => (await import("../../api/index.ts")).createApi(app, options),
  });
}

export function dashboardCommand(): Command {
  return serveCommand({
    name: "dashboard",
    about: "serve the dashboard, and the HTTP API below /api, until Ctrl-C or SIGTERM",
    what: "the dashboard",
    port: dashboardPort,
    create: async (app, options) => (await import("../../dashboard/index.ts")).createDashboard(app, options),
  });
}
