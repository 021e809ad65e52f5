// An app and its dashboard, for the servers beside this file.
import { createDashboard } from "../../src/dashboard/index.ts";
import { createEscapement, defineJob } from "../../src/index.ts";

const greet = defineJob<{ name: string }, string>({
  name: "greet",
  run: ({ input }) => `Hello, ${input.name}!`,
});

export const app = createEscapement({
  store: process.env["ESCAPEMENT_STORE"] ?? "sqlite:.escapement/dashboard.db",
  jobs: [greet],
});

// #region dashboard
export const dashboard = createDashboard(app, {
  basePath: "/ops/escapement",
  tokens: [{ token: process.env["OPS_TOKEN"] ?? "", actor: "ops", role: "operate" }],
  redact: ["password", /\b\d{16}\b/],
});
// #endregion
