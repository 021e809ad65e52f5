import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { streamSSE } from "hono/streaming";
import type { ZodError } from "zod";
import { recordError } from "../errors.ts";
import { holdsRawNumbers, parseExact } from "../exact-json.ts";
import { Answered, type AnyEndpoint, type Call, type Services } from "./endpoint.ts";
import type { Identity } from "./options.ts";
import { ProblemError } from "./problem.ts";
import { mask, type Redactor } from "./redact.ts";
import { describeIssue } from "./request-issue.ts";
import { mayDo, type Role, type RouteName, roleOf } from "./roles.ts";
import type { StreamEvent } from "./streams.ts";

/** What the way in leaves for the routes. */
export interface Env {
  readonly Variables: { identity: Identity; body?: unknown };
}

export type Router = OpenAPIHono<Env>;

/** What routes are registered with. */
export interface Registration {
  readonly services: Services;
  readonly redactor: Redactor;
  readonly maxBodyBytes: number;
}

const problem = z
  .strictObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string(),
  })
  .openapi("Problem");

export const problemType = "application/problem+json";

/** Adds a route: who may call it, what it takes, and its place in the description. */
export function register(router: Router, one: AnyEndpoint, registration: Registration): void {
  const { services, redactor } = registration;
  const route = createRoute({
    ...describe(one),
    middleware: [requireRole(one.route), ...bodyChecks(one, registration.maxBodyBytes)],
  });
  router.openapi(route, async (context) => {
    const left = new AbortController();
    const call = callOf(context, one, services, left.signal);
    if (redactor.holdsMask(call.body))
      throw new ProblemError(
        "invalid-request",
        `the body holds ${mask}: a value that was read masked cannot be written back`,
      );
    const value = await one.run(call);
    if (value instanceof Response) return value;
    if (one.isStream === true)
      return stream(context, value as AsyncGenerator<StreamEvent, void>, redactor, left);
    const [answer, status] =
      value instanceof Answered ? [value.value, value.status] : [value, one.status ?? 200];
    return jsonAnswer(redactor.stringify(answer), status);
  });
}

export function jsonAnswer(text: string, status: number, type = "application/json"): Response {
  return new Response(text, { status, headers: { "Content-Type": type } });
}

/** A route for the description, and for the check of requests. */
function describe(one: AnyEndpoint) {
  const { route, summary, params, query, body, headers, answer, status = 200, isStream = false } = one;
  const [method = "", path = ""] = route.split(" ");
  const answers = { [isStream ? "text/event-stream" : "application/json"]: { schema: answer } };
  const problems = { description: "A problem.", content: { [problemType]: { schema: problem } } };
  return {
    method: method.toLowerCase() as "get" | "post" | "put" | "patch" | "delete",
    path,
    summary,
    operationId: operationIdOf(route),
    description:
      roleOf[route] === "anyone" ? "Needs no credentials." : `Needs the role \`${roleOf[route]}\`.`,
    security: roleOf[route] === "anyone" ? [{}, { bearer: [] }] : [{ bearer: [] }],
    request: {
      ...(params === undefined ? {} : { params }),
      query: query ?? z.strictObject({}),
      ...(headers === undefined ? {} : { headers }),
      ...(body === undefined
        ? {}
        : { body: { required: !isOptional(body), content: { "application/json": { schema: body } } } }),
    },
    responses: {
      [status]: { description: "Done.", content: answers },
      ...(route === "POST /jobs" ? { 200: { description: "It already existed.", content: answers } } : {}),
      ...(roleOf[route] === "anyone" ? { 503: { description: "It is not.", content: answers } } : {}),
      ...(route === "GET /jobs/{id}/events" ? { 204: { description: "It has ended." } } : {}),
      default: problems,
    },
  };
}

/** `POST /jobs/{id}/run-now` is `post-jobs-id-run-now`. */
function operationIdOf(route: RouteName): string {
  return route
    .toLowerCase()
    .replaceAll(/[^a-z]+/g, "-")
    .replace(/-$/, "");
}

/** Whether a request may come without a body. */
function isOptional(body: z.ZodType): boolean {
  return body.safeParse({}).success;
}

function requireRole(route: RouteName) {
  return async (context: Context<Env>, next: () => Promise<void>): Promise<void> => {
    const { role, actor } = context.get("identity");
    checkRole(role, actor, route);
    await next();
  };
}

export function checkRole(role: Role, actor: string, route: RouteName): void {
  if (mayDo(role, roleOf[route])) return;
  throw new ProblemError("forbidden", `${route} needs the role ${roleOf[route]}, and ${actor} has ${role}`);
}

/** Bodies are JSON, bounded, and an empty one means an object without fields where that is allowed. */
function bodyChecks({ body }: AnyEndpoint, maxSize: number) {
  if (body === undefined) return [];
  const readJson = async (context: Context<Env>, next: () => Promise<void>): Promise<void> => {
    const bytes = await readBounded(context.req.raw, maxSize);
    const type = context.req.header("content-type")?.split(";", 1)[0]?.trim().toLowerCase();
    if (type !== "application/json" && (bytes.length > 0 || type !== undefined)) {
      throw new ProblemError("not-json", "expected a body of the content type application/json");
    }
    const headers = new Headers(context.req.raw.headers);
    headers.set("Content-Type", "application/json");
    const text = bytes.length === 0 ? "{}" : decode(bytes);
    const { method, url, signal } = context.req.raw;
    context.req.raw = new Request(url, { method, headers, body: text, signal });
    context.set("body", parseExact(text));
    await next();
  };
  return [readJson];
}

/** Counts what arrives, since a length can be missing, and stops at the first byte too many. */
async function readBounded({ body, headers }: Request, most: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = Number(headers.get("content-length") ?? 0);
  if (length <= most && body !== null) {
    length = 0;
    for await (const chunk of body) {
      length += chunk.length;
      if (length > most) break;
      chunks.push(chunk);
    }
  }
  if (length <= most) return Buffer.concat(chunks);
  throw new ProblemError("body-too-large", `expected a body of at most ${most} bytes`);
}

function decode(bytes: Uint8Array): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    JSON.parse(text);
    checkDepth(text);
    return text;
  } catch (error) {
    throw new ProblemError("invalid-request", `expected a body of JSON: ${recordError(error).message}`);
  }
}

const deepest = 200;

/** Very deep nesting exhausts the stack of any code that walks it, here or in a handler. */
function checkDepth(text: string): void {
  let depth = 0;
  // Strings are skipped whole: a bracket in them does not count.
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    if (token === "[" || token === "{") depth += 1;
    else if (token === "]" || token === "}") depth -= 1;
    if (depth > deepest) throw new SyntaxError(`nested deeper than ${deepest} levels`);
  }
}

function callOf(
  context: Context<Env>,
  one: AnyEndpoint,
  services: Services,
  left: AbortSignal,
): Call<unknown, unknown, unknown> {
  const read = (target: "param" | "query" | "json"): unknown => context.req.valid(target as never);
  return {
    ...services,
    params: one.params === undefined ? {} : read("param"),
    query: read("query"),
    body: one.body === undefined ? {} : withExactInput(read("json"), context.get("body")),
    ...context.get("identity"),
    header: (name) => context.req.header(name) ?? null,
    signal: AbortSignal.any([context.req.raw.signal, left]),
  };
}

/** What an application is given keeps all digits of its numbers, which the check of the body does not. */
function withExactInput(checked: unknown, body: unknown): unknown {
  if (!holdsRawNumbers(body) || typeof checked !== "object" || checked === null) return checked;
  const given = body as { readonly input?: unknown };
  return "input" in checked ? { ...checked, input: given.input } : checked;
}

/** What is wrong with a request, each field by its name. */
export function refuse(error: ZodError, target: string): never {
  const where = { param: "the path", query: "the query", json: "the body", header: "the headers" }[target];
  const issues = error.issues.slice(0, 10).map(describeIssue);
  throw new ProblemError("invalid-request", `${where ?? target}: ${issues.join("; ")}`);
}

function stream(
  context: Context<Env>,
  events: AsyncGenerator<StreamEvent, void>,
  redactor: Redactor,
  left: AbortController,
): Response {
  return streamSSE(
    context,
    async (sse) => {
      sse.onAbort(() => left.abort());
      for await (const one of events) {
        if (one === null) await sse.write(": alive\n\n");
        else await sse.writeSSE({ event: one.event, id: one.id, data: redactor.stringify(one.data) });
      }
    },
    async () => {},
  );
}
