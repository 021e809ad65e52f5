import { parseExact } from "../../../src/exact-json.ts";

/** What the API says when it refuses or fails. */
class ApiError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
  }
}

/** Whether what was asked for is not there. */
export function isUnknown(error: Error | null): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** Whether the question itself was wrong, as with a filter that was typed into the address bar. */
export function isMistaken(error: Error | null): boolean {
  return error instanceof ApiError && error.status === 400;
}

const tokenKey = "escapement-token";
let onRefused = (): void => {};

/** Told when the API wants a token, or another one. */
export function whenRefused(listener: () => void): void {
  onRefused = listener;
}

/** Kept for this tab only, and never in a cookie: no other page can make the browser send it. */
export function setToken(token: string): void {
  sessionStorage.setItem(tokenKey, token);
}

let answeredAt = Date.now();

/** When the server last answered a question of this page. */
export function lastAnswerAt(): number {
  return answeredAt;
}

export type Query = Readonly<Record<string, string | number | undefined | null>>;

interface Asked {
  readonly method?: string;
  readonly query?: Query;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

export async function request<T>(
  path: string,
  { method = "GET", query = {}, body, signal }: Asked = {},
): Promise<T> {
  const url = new URL(`api/${path}`, document.baseURI);
  for (const [key, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(key, String(value));
  const headers: Record<string, string> = { Accept: "application/json" };
  const token = sessionStorage.getItem(tokenKey);
  if (token !== null) headers["Authorization"] = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const sent: RequestInit = { method, headers, signal: signal ?? null };
  if (body !== undefined) sent.body = JSON.stringify(body);
  const response = await fetch(url, sent).catch((error: unknown) => {
    if (signal?.aborted === true) throw error;
    throw new ApiError(
      0,
      "unreachable",
      "The server does not answer. Nothing was changed, as far as this page knows.",
    );
  });
  if (response.ok) {
    answeredAt = Date.now();
    return parseExact(await response.text()) as T;
  }
  if (response.status === 401) onRefused();
  throw await problemOf(response);
}

async function problemOf(response: Response): Promise<ApiError> {
  const problem = await response.json().catch(() => null);
  const text = String(problem?.detail ?? problem?.title ?? `The server answered ${response.status}.`);
  const code = problem?.code ?? "unknown";
  return new ApiError(response.status, code, code === "invalid-request" ? inWords(text) : text);
}

/** Where a checker found it, `the query: expected state[0] to be one of …`, is for programs. People filled in a field. */
function inWords(text: string): string {
  return text
    .replace(/^the (query|body|path): /i, "")
    .replaceAll(/expected (?:\w+\.)*(\w+)(?:\[\d+\])? to (be|have) /g, "$1 must $2 ");
}
