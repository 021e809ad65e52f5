// An app and its API, for the servers beside this file.
import { createApi } from "../../src/api/index.ts";
import { createEscapement, defineJob } from "../../src/index.ts";

const greet = defineJob<{ name: string }, string>({
  name: "greet",
  run: ({ input }) => `Hello, ${input.name}!`,
});

export const app = createEscapement({
  store: process.env["ESCAPEMENT_STORE"] ?? "sqlite:.escapement/api.db",
  jobs: [greet],
});

// #region api
export const api = createApi(app, {
  basePath: "/escapement",
  tokens: [{ token: process.env["OPS_TOKEN"] ?? "", actor: "ops", role: "operate" }],
  redact: ["password", /\b\d{16}\b/],
});
// #endregion
