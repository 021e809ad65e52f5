import type { Client } from "../client/client.ts";
import { type ErrorRecord, readErrorHead } from "../errors.ts";
import { checkInteger, checkKnown, checkOneOf } from "../options.ts";
import { isTerminal } from "../state.ts";
import type { JobSketch, ScanFilter } from "../store/questions.ts";
import { withoutTrace } from "../telemetry/trace.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { LookAhead } from "./look-ahead.ts";

/** Which jobs: the terms of a store's filter, what no index serves, and the fingerprint of their failure. */
export interface JobsFilter extends ScanFilter {
  /** The id of a {@link Fingerprint}. */
  readonly fingerprint?: string;
}

export interface JobsOptions {
  /** @default 50 */
  readonly limit?: number;
  /** By their enqueueing, or, where only ended jobs are asked for, by their ends. @default "newest" */
  readonly order?: "newest" | "oldest";
  /** How many jobs to look at, at most, before a page is answered as it is. @default 10_000 */
  readonly lookAt?: number;
  /** From the previous page. */
  readonly cursor?: string | null;
}

/** A job in a list: without what can be long. `jobs` of {@link Operations} shows all of one. */
export interface JobSummary extends Omit<JobSketch, "errorHead"> {
  readonly error: Pick<ErrorRecord, "name" | "message"> | null;
}

export interface JobsPage {
  readonly jobs: readonly JobSummary[];
  /** How many jobs were searched for this page. */
  readonly looked: number;
  /** The cursor to continue with; null when every job was examined. A page may be short, or empty, and still have one. */
  readonly cursor: string | null;
}

const defaultLookAt = 10_000;

export async function findJobs(client: Client, filter: JobsFilter, options: JobsOptions): Promise<JobsPage> {
  checkKnown(options, ["limit", "order", "lookAt", "cursor"], "jobs");
  const limit = checkInteger(options.limit ?? 50, 1, 10_000, "limit");
  const order = checkOneOf(options.order ?? "newest", ["newest", "oldest"], "order");
  const lookAt = checkInteger(options.lookAt ?? defaultLookAt, 1, 10_000_000, "lookAt");
  const by = isAboutEnds(filter) ? "ended" : "enqueued";
  const found: JobSketch[] = [];
  let looked = 0;
  let cursor = options.cursor ?? null;
  const ahead = new LookAhead(limit);
  let most: number | null = null;
  do {
    const wanted = limit - found.length;
    const page = await scanPage(client, filter, {
      by,
      order,
      limit: wanted,
      lookAt: ahead.within(lookAt - looked),
      cursor,
    });
    ahead.learn(wanted, page.jobs.length);
    found.push(...page.jobs);
    looked += page.looked;
    cursor = page.cursor;
    if (cursor === null || found.length === limit) break;
    // Kept counts say cheaply whether there can be more: what is nowhere is not looked for among a million.
    most ??= await mostThatMatch(client, filter);
    if (found.length >= most) cursor = null;
  } while (cursor !== null && looked < lookAt);
  return { jobs: found.map(toSummary), looked, cursor };
}

/** Every store finds ended jobs by their ends, however many others there are. */
function isAboutEnds({ ids, states, endedAfter, endedBefore }: JobsFilter): boolean {
  if (endedAfter !== undefined || endedBefore !== undefined) return true;
  return ids === undefined && states !== undefined && states.length > 0 && states.every(isTerminal);
}

/** At least as many jobs as match: what the store counts of them without reading jobs. */
async function mostThatMatch(client: Client, { states, names, queues }: JobsFilter): Promise<number> {
  const [row] = await client.countBy([], {
    ...(states === undefined ? {} : { states }),
    ...(names === undefined ? {} : { names }),
    ...(queues === undefined ? {} : { queues }),
  });
  return row?.count ?? 0;
}

interface Page {
  readonly by?: "enqueued" | "ended";
  readonly order: "newest" | "oldest";
  readonly limit: number;
  readonly lookAt: number;
  readonly cursor: string | null;
}

/** One scan, with what only this layer knows of a filter. */
export async function scanPage(
  client: Client,
  filter: JobsFilter,
  page: Page,
): Promise<{ readonly jobs: JobSketch[]; readonly looked: number; readonly cursor: string | null }> {
  const { fingerprint, ...scanned } = filter;
  const { jobs, looked, cursor } = await client.scan({ filter: scanned, ...page });
  if (fingerprint === undefined) return { jobs: [...jobs], looked, cursor };
  return { jobs: jobs.filter((job) => fingerprintOf(job).id === fingerprint), looked, cursor };
}

export function toSummary({ errorHead, ...rest }: JobSketch): JobSummary {
  return { ...rest, tags: withoutTrace(rest.tags), error: readErrorHead(errorHead) };
}
