import type { ApiSettings } from "./options.ts";
import { ProblemError } from "./problem.ts";

/**
 * Refuses what a page of another site makes a browser send. Browsers say where a request comes from and pages cannot change it; programs
 * send neither header. Without logins, reads are refused too.
 */
export function checkSite(request: Request, { origins, insecure }: ApiSettings): void {
  const isReading = request.method === "GET" || request.method === "HEAD";
  if (isReading && !insecure) return;
  const origin = request.headers.get("origin");
  if (origin !== null && origins.includes(origin)) return;
  const site = request.headers.get("sec-fetch-site") ?? "none";
  const isOwnSite = site === "same-origin" || site === "none";
  // Only the host is compared: a proxy may have taken the s off https.
  const isOwnPage = origin === null || URL.parse(origin)?.host === new URL(request.url).host;
  if (isOwnSite && isOwnPage) return;
  throw new ProblemError(
    "cross-site",
    `a page of ${origin ?? "another site"} may not do this here; name its origin in origins if it may`,
  );
}
