import { version } from "../runtime/version.ts";
import type { Router } from "./register.ts";

/** The description of the API (OpenAPI 3.1), from the schemas that check its requests. */
export function describeApi(router: Pick<Router, "getOpenAPI31Document">, basePath: string) {
  const document = router.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "Escapement",
      version,
      description:
        "Durable jobs: query them, act on one, or on all that match. Errors are problem+json (RFC 9457) with a code that never changes its meaning.",
      license: { name: "MIT" },
    },
    servers: [{ url: basePath === "" ? "/" : basePath }],
    security: [{ bearer: [] }],
  });
  const components = document.components ?? {};
  return {
    ...document,
    components: { ...components, securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
    // The routes know their prefix; the description has it once, as the address of the server.
    paths: Object.fromEntries(
      Object.entries(document.paths ?? {}).map(([path, item]) => [path.slice(basePath.length), item]),
    ),
  };
}
