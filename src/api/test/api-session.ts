import { createEscapement, defineJob, type Escapement } from "../../index.ts";
import { silentLogger } from "../../log.ts";
import { createApi } from "../create-api.ts";
import type { ApiOptions } from "../options.ts";
import { type Role, roles } from "../roles.ts";

/** The token of each role. */
export const tokens = Object.fromEntries(
  roles.map((role) => [role, `${role}-${"0123456789abcdef".repeat(2)}`]),
) as Record<Role, string>;

export const apiTokens = roles.map((role) => ({ token: tokens[role], actor: `${role}-person`, role }));

export const mail = defineJob<{ to: string }>({
  name: "mail",
  queue: "post",
  retry: { attempts: 1 },
  run: ({ input }) => {
    if (input.to === "nobody") throw new RangeError("no route to nobody, password=hunter2");
    return { sent: input.to };
  },
});

/** An app in memory and its API, to be asked. */
export function openSession(options: ApiOptions = { tokens: apiTokens }) {
  const app: Escapement = createEscapement({ store: "memory:", jobs: [mail], log: silentLogger });
  const api = createApi(app, options);
  const ask = async (route: string, { token = tokens.admin, body, headers = {}, address }: Asking = {}) => {
    const [method = "", path = ""] = route.split(" ");
    const request = new Request(`http://localhost${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const response = await api(request, address === undefined ? undefined : { address });
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    const text = isStream ? "" : await response.text();
    if (isStream) await response.body?.cancel();
    // Tests look into answers of every shape.
    const answer: Record<string, never> = text === "" ? {} : JSON.parse(text);
    return { status: response.status, headers: response.headers, text, answer };
  };
  return { app, api, ask };
}

interface Asking {
  readonly token?: string | null;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly address?: string;
}
