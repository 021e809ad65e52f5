// The dashboard for whoever is signed in to the site around it: no token, and no cookie of its own.
import { createDashboard } from "../../src/dashboard/index.ts";
import { app } from "./app.ts";

/** Stands for the site's own sessions. */
async function userOf(request: Request): Promise<{ name: string; isAdmin: boolean } | null> {
  const session = /session=(\w+)/.exec(request.headers.get("cookie") ?? "")?.[1];
  return session === undefined ? null : { name: session, isAdmin: session === "ada" };
}

// #region session
export const dashboard = createDashboard(app, {
  basePath: "/ops/escapement",
  authorize: async (request) => {
    const user = await userOf(request);
    return user && { actor: user.name, role: user.isAdmin ? "admin" : "read" };
  },
});
// #endregion
