import { type Api, type ApiOptions, createApi } from "../api/index.ts";
import type { Escapement } from "../app/escapement.ts";
import { servePage } from "./serve-page.ts";

/**
 * The dashboard of an app, and the API that it uses (below `/api`), as one handler of web-standard requests. The options are the API's. The
 * page itself is the same for everyone and has no data: it fetches all of it from the API, with the user's token.
 *
 * @example
 * const dashboard = createDashboard(app, { basePath: "/jobs", authorize: (request) => sessionOf(request) });
 * server.all("/jobs/*", (context) => dashboard(context.req.raw));
 */
export function createDashboard(app: Escapement, options: ApiOptions): Api {
  const { basePath = "" } = options;
  const apiPath = `${basePath}/api`;
  const api = createApi(app, { ...options, basePath: apiPath });
  const answer = async (request: Request, context?: unknown): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (pathname === apiPath || pathname.startsWith(`${apiPath}/`)) return api(request, context);
    return servePage(request, basePath);
  };
  return Object.assign(answer, { close: () => api.close() });
}
