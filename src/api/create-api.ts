import { OpenAPIHono } from "@hono/zod-openapi";
import { etag } from "hono/etag";
import type { Escapement } from "../app/escapement.ts";
import { formatDuration } from "../duration.ts";
import { recordError } from "../errors.ts";
import { Operations } from "../operations/operations.ts";
import { Authenticator } from "./authenticate.ts";
import { checkSite } from "./cross-site.ts";
import { endpoints } from "./endpoints.ts";
import { describeApi } from "./openapi.ts";
import { type ApiOptions, type ApiSettings, type RequestContext, resolveOptions } from "./options.ts";
import { ProblemError, problemOf } from "./problem.ts";
import { Redactor } from "./redact.ts";
import { checkRole, type Env, jsonAnswer, problemType, type Router, refuse, register } from "./register.ts";
import { anyone, isOpen, roleOf } from "./roles.ts";
import { Streams } from "./streams.ts";
import { Tasks } from "./tasks.ts";

/** Answers requests about one app. */
export interface Api {
  /** The second parameter is for servers that know whom they talk to; anything without an `address` is passed over. */
  (request: Request, context?: unknown): Promise<Response>;
  /** Ends event streams and stops background tasks after the current page; you stop the app yourself. */
  close(): void;
}

/**
 * The HTTP API of an app: a handler of web-standard requests that mounts wherever those are known.
 *
 * @example
 * const api = createApi(app, { basePath: "/escapement", tokens: [{ token, actor: "ops", role: "operate" }] });
 * const response = await api(new Request("https://host/escapement/jobs?state=dead"));
 */
export function createApi(app: Escapement, options: ApiOptions): Api {
  const settings = resolveOptions(options, app.settings);
  const redactor = new Redactor(settings.redact);
  const streams = new Streams(settings.maxStreams);
  const tasks = new Tasks();
  const router = createRouter(settings, redactor);
  const operations = new Operations(app);
  const { verifyReport, notice } = settings;
  const services = { app, operations, tasks, streams, verifyReport, notice, isRedacted: redactor.isActive };
  for (const one of endpoints)
    register(router, one, { services, redactor, maxBodyBytes: settings.maxBodyBytes });
  addDescription(router, settings);
  refuseOtherMethods(router);
  const authenticator = new Authenticator(settings);
  const answer = async (request: Request, context?: unknown): Promise<Response> => {
    const response = await respond(request, addressOf(context));
    return secured(response);
  };
  const respond = async (request: Request, context: RequestContext): Promise<Response> => {
    try {
      checkSite(request, settings);
      const identity = isProbe(request, settings) ? anyone : await authenticator.identify(request, context);
      return await inTime(router.fetch(request, { identity }), settings);
    } catch (error) {
      return problemResponse(error, settings, redactor);
    }
  };
  const close = (): void => {
    streams.stop();
    tasks.stopAll();
  };
  return Object.assign(answer, { close });
}

/** A stream answers when it is opened, so this does not bound it. */
async function inTime(
  answer: Response | Promise<Response>,
  { answerTimeoutMs }: ApiSettings,
): Promise<Response> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () =>
        reject(
          new ProblemError(
            "store-unavailable",
            `no answer within ${formatDuration(answerTimeoutMs)}; the operation may still complete`,
          ),
        ),
      answerTimeoutMs,
    );
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A request without credentials for a route that needs none. One with credentials is checked, and may learn more. */
function isProbe({ method, url, headers }: Request, { basePath }: ApiSettings): boolean {
  const { pathname } = new URL(url);
  if (!pathname.startsWith(basePath) || !isOpen(`${method} ${pathname.slice(basePath.length)}`)) return false;
  return !headers.has("authorization") && !headers.has("cookie");
}

function createRouter(settings: ApiSettings, redactor: Redactor): Router {
  const hook = (result: { success: boolean; target: string; error?: unknown }): void => {
    if (!result.success) refuse(result.error as Parameters<typeof refuse>[0], result.target);
  };
  const router = new OpenAPIHono<Env>({ defaultHook: hook }).basePath(settings.basePath);
  router.onError((error) => problemResponse(error, settings, redactor));
  router.notFound((context) =>
    problemResponse(
      new ProblemError("unknown-route", `there is no route ${context.req.path}; see openapi.json`),
      settings,
      redactor,
    ),
  );
  router.use(async (context, next) => {
    context.set("identity", (context.env as unknown as Env["Variables"]).identity);
    await next();
  });
  const tagged = etag();
  router.use(async (context, next) => {
    // A stream has no end to take a digest of.
    const isStream = /\/events(\/|$)/.test(context.req.path);
    return isStream ? next() : tagged(context, next);
  });
  return router;
}

function addDescription(router: Router, { basePath }: ApiSettings): void {
  router.get("/openapi.json", (context) => {
    const { role, actor } = context.get("identity");
    checkRole(role, actor, "GET /openapi.json");
    return jsonAnswer(JSON.stringify(describeApi(router, basePath)), 200);
  });
}

/** A path that is known, asked with a method that is not. */
function refuseOtherMethods(router: Router): void {
  const methods = new Map<string, string[]>();
  for (const route of Object.keys(roleOf)) {
    const [method = "", path = ""] = route.split(" ");
    methods.set(path, [...(methods.get(path) ?? []), method]);
  }
  for (const [path, known] of methods) {
    router.all(path.replaceAll(/\{(\w+)\}/g, ":$1"), (context) => {
      throw new ProblemError(
        "method-not-allowed",
        `${context.req.method} is not supported here; supported: ${known.join(", ")}`,
        { Allow: known.join(", ") },
      );
    });
  }
}

function problemResponse(error: unknown, { log }: ApiSettings, redactor: Redactor): Response {
  const problem = problemOf(error);
  if (problem.status === 500)
    log.error(
      { error: JSON.parse(redactor.stringify(recordError(error))) },
      "the API failed to answer a request",
    );
  const response = jsonAnswer(redactor.stringify(problem), problem.status, problemType);
  const headers = error instanceof ProblemError ? error.headers : {};
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}

const securityHeaders = {
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
} as const;

function secured(response: Response): Response {
  for (const [name, value] of Object.entries(securityHeaders)) response.headers.set(name, value);
  // Clients may cache what has an ETag, and must revalidate it each time.
  response.headers.set("Cache-Control", response.headers.has("ETag") ? "private, no-cache" : "no-store");
  response.headers.set("Vary", "Authorization");
  return response;
}

function addressOf(context: unknown): RequestContext {
  if (typeof context !== "object" || context === null || !("address" in context)) return {};
  return typeof context.address === "string" && context.address !== "" ? { address: context.address } : {};
}
