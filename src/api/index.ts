export { type Api, createApi } from "./create-api.ts";
export { type NodeListener, toNodeListener } from "./node-listener.ts";
export type { ApiOptions, ApiToken, Identity, RequestContext } from "./options.ts";
export type { Redaction } from "./redact.ts";
export type { Role } from "./roles.ts";
export { readTokens } from "./tokens-source.ts";
