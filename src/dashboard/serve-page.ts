import { createHash } from "node:crypto";
import { pageFiles } from "./page-files.ts";

const kinds: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

/** Nothing runs, and nothing is asked, but what comes from here. No frame shows it. */
const securityHeaders = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
} as const;

/** A file of the page; whatever else is asked for below the mount is a screen, which the page itself shows. */
export function servePage(request: Request, basePath: string): Response {
  const { pathname, search } = new URL(request.url);
  if (request.method !== "GET" && request.method !== "HEAD")
    return answer("This page is only read.\n", "txt", 405, { Allow: "GET, HEAD" });
  // Links of the page are relative to its mount.
  if (pathname === basePath) return answer(null, "txt", 308, { Location: `${basePath}/${search}` });
  const path = pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length + 1) : null;
  const isAsset = path?.startsWith("assets/") === true;
  const text = path === null ? undefined : pageFiles[isAsset ? path : "index.html"];
  if (text === undefined) return answer("There is no such file.\n", "txt", 404);
  const file = isAsset ? text : text.replace('<base href="/" />', `<base href="${basePath}/" />`);
  const tag = `"${createHash("sha256").update(file).digest("base64url").slice(0, 20)}"`;
  const headers = { ETag: tag, "Cache-Control": "no-cache" };
  const ending = isAsset ? (path.split(".").at(-1) ?? "") : "html";
  const isKnown = (request.headers.get("if-none-match") ?? "").includes(tag);
  if (isKnown) return answer(null, ending, 304, headers);
  return answer(request.method === "HEAD" ? null : file, ending, 200, headers);
}

function answer(
  body: string | null,
  ending: string,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const type = kinds[ending] ?? "text/plain; charset=utf-8";
  return new Response(body, { status, headers: { ...securityHeaders, "Content-Type": type, ...headers } });
}
