import type { Problem } from "./wire.ts";

export interface ClientOptions {
  /** Where the API is, with its base path: `"https://ops.example.com/escapement"`. */
  readonly url: string;
  /** Sent as `Authorization: Bearer …`; a function is asked for each request. */
  readonly token?: string | (() => string | Promise<string>);
  /** Sent with each request, for an API with its own `authorize`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How long one request may take. @default 60_000 */
  readonly timeoutMs?: number;
  /** @default the global one */
  readonly fetch?: typeof fetch;
}

/** What the API said instead of an answer. */
export class ApiError extends Error {
  override readonly name: string = "ApiError";
  readonly status: number;
  /** `not-found`, `forbidden`, …; `no-answer` when there was none, or none of an API. */
  readonly code: string;

  constructor(code: string, message: string, status: number, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.status = status;
  }
}

/** What one request sends. */
export interface Sent {
  readonly query?: object;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether it may be sent again when it is unknown whether it arrived. @default for GET */
  readonly isRepeatable?: boolean;
}

export type Send = <T>(method: string, path: string, sent?: Sent) => Promise<T>;

const maxAttempts = 4;
const firstPauseMs = 100;

/** Sends requests of one client. */
export function sender(options: ClientOptions): Send {
  const base = options.url.replace(/\/+$/, "");
  const ask = options.fetch ?? fetch;
  return async <T>(method: string, path: string, sent: Sent = {}): Promise<T> => {
    const { query = {}, body, isRepeatable = method === "GET" } = sent;
    const url = `${base}${path}${queryOf(query)}`;
    for (let number = 1; ; number += 1) {
      const headers = await headersOf(options, sent);
      const signal = AbortSignal.timeout(options.timeoutMs ?? 60_000);
      const init = { method, headers, signal, redirect: "error" } as const;
      try {
        const response = await ask(url, body === undefined ? init : { ...init, body: JSON.stringify(body) });
        const text = await response.text();
        if (response.ok) return JSON.parse(text) as T;
        throw errorOf(response.status, text);
      } catch (thrown) {
        const error =
          thrown instanceof ApiError
            ? thrown
            : new ApiError("no-answer", `${method} ${path} got no answer`, 0, { cause: thrown });
        const isPassing = error.status === 0 || error.status === 502 || error.status === 503;
        if (!isRepeatable || !isPassing || number === maxAttempts) throw error;
        await new Promise((resolve) => setTimeout(resolve, firstPauseMs * 2 ** number));
      }
    }
  };
}

async function headersOf(
  { token, headers = {} }: ClientOptions,
  sent: Sent,
): Promise<Record<string, string>> {
  const bearer = typeof token === "function" ? await token() : token;
  return {
    ...headers,
    ...(bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` }),
    ...(sent.body === undefined ? {} : { "Content-Type": "application/json" }),
    ...sent.headers,
  };
}

function queryOf(query: object): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined && one !== null) search.append(key, String(one));
  }
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

function errorOf(status: number, text: string): ApiError {
  try {
    const { code, detail }: Partial<Problem> = JSON.parse(text);
    if (typeof code === "string" && typeof detail === "string") return new ApiError(code, detail, status);
  } catch {
    // Something else answered: a proxy, or a page.
  }
  return new ApiError("no-answer", `expected an answer from the API, got status ${status}`, status);
}
