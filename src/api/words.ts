import { z } from "@hono/zod-openapi";
import { parseDuration } from "../duration.ts";
import { deliveries, jobStates } from "../job.ts";
import { filterOf } from "../operations/filter-words.ts";
import type { JobsFilter } from "../operations/find-jobs.ts";

/** The words of requests: each is checked and described here, once, for every route that takes it. */

/** An instant, as answers show it. */
export const instant = z.iso.datetime().openapi({ example: "2026-11-15T03:00:00.000Z" });

function isPlain(value: string): boolean {
  return value.isWellFormed() && !/\p{Cc}/u.test(value);
}

/** Free text, of which some databases keep neither NUL nor half a character. */
function text(longest: number) {
  return z
    .string()
    .max(longest)
    .refine(
      (value) => value.isWellFormed() && !value.includes("\0"),
      "expected no NUL and no lone surrogates",
    );
}

/** What may be in a path or a query: no control characters, and bounded like everything that is indexed. */
const word = (longest: number) =>
  z
    .string()
    .min(1)
    .max(longest)
    .refine(isPlain, "expected no control characters and no halves of characters");
export const id = word(255).openapi({ example: "invoice:42" });
export const name = word(128);
export const reason = text(1_000).openapi({ description: "Kept in the trail and the audit log." });
/** A schema with a name, or null. `nullable` would make the named one nullable everywhere. */
export function orNull<S extends z.ZodType>(schema: S) {
  return z.union([schema, z.null()]);
}

export const count = z.int().min(0);

/** With a zone, and with or without seconds. */
function isInstant(text: string): boolean {
  return [null, -1].some((precision) => z.iso.datetime({ offset: true, precision }).safeParse(text).success);
}

const agoPattern = /^\d+(\.\d+)?(ms|s|m|h|d|w)$/;

/** A point in time, or how long ago. */
export const instantOrAgo = z
  .string()
  .max(40)
  .transform((text, context) => {
    if (agoPattern.test(text)) {
      try {
        return new Date(Date.now() - parseDuration(text, "time"));
      } catch {
        // Handled below.
      }
    }
    const date = isInstant(text) ? new Date(text) : null;
    if (date !== null && !Number.isNaN(date.getTime())) return date;
    context.addIssue({
      code: "custom",
      message: "expected a time such as 2026-11-15T03:00:00Z, or how long ago, such as 90m",
    });
    return z.NEVER;
  })
  .openapi({ type: "string", description: "A time such as 2026-11-15T03:00:00Z, or how long ago: 90m, 2d." });

/** A point in time that a caller gives. */
export const givenInstant = z
  .string()
  .max(40)
  .refine(isInstant, "expected a time such as 2026-11-15T03:00:00Z")
  .transform((text) => new Date(text))
  .openapi({ type: "string", format: "date-time" });

/** A duration: `30s`, or milliseconds. */
export const duration = z
  .union([
    z.number().min(0),
    z.string().max(40).regex(agoPattern, `expected a duration such as 500 or "30s"`),
  ])
  .transform((value) => parseDuration(value, "it"))
  .openapi({
    description: "Milliseconds, or a number with a unit: 250ms, 30s, 1.5h.",
    anyOf: [
      { type: "number", minimum: 0 },
      { type: "string", pattern: agoPattern.source },
    ],
    type: undefined as never,
  });

/** A whole number in a query, where everything is a string. */
export function whole(min: number, max: number, otherwise: number) {
  return z
    .string()
    .regex(/^\d{1,10}$/, `expected a whole number from ${min} to ${max}`)
    .transform(Number)
    .pipe(z.int().min(min).max(max))
    .optional()
    .transform((value) => value ?? otherwise)
    .openapi({ type: "integer", minimum: min, maximum: max, default: otherwise });
}

const mostValues = 100;

/** How one value is described. */
interface Items {
  type: "string";
  enum?: string[];
  minLength?: number;
  maxLength?: number;
}

/** A word that may be repeated in a query. */
function repeated<T extends string>(item: z.ZodType<T, string>, isSplit: boolean, items: Items) {
  return z
    .union([z.string().max(1_000), z.array(z.string().max(1_000)).max(mostValues)])
    .transform((value) => (Array.isArray(value) ? value : [value]))
    .transform((values) => (isSplit ? values.flatMap((one) => one.split(",")) : values))
    .pipe(z.array(item).max(mostValues))
    .optional()
    .openapi({ type: "array", items: { ...items }, maxItems: mostValues });
}

export const manyNames = repeated(name, false, { type: "string", minLength: 1, maxLength: 128 });
export const manyTargets = repeated(word(300), false, { type: "string", minLength: 1, maxLength: 300 });
const state = z.enum(jobStates);
const delivery = z.enum(deliveries);
const searched = text(1_000).min(1);

/** Which jobs, in a query. */
export const filterQuery = {
  state: repeated(state, true, { type: "string", enum: [...jobStates] }),
  name: manyNames,
  queue: manyNames,
  tag: manyNames,
  delivery: repeated(delivery, true, { type: "string", enum: [...deliveries] }),
  schedule: name.optional(),
  since: instantOrAgo.optional(),
  until: instantOrAgo.optional(),
  error: searched.optional(),
  text: searched.optional(),
  fingerprint: word(64).optional(),
};

/** Which jobs, in a body. */
export const filterBody = z
  .strictObject({
    state: z.array(state).max(mostValues),
    name: z.array(name).max(mostValues),
    queue: z.array(name).max(mostValues),
    tag: z.array(name).max(mostValues),
    delivery: z.array(delivery).max(mostValues),
    schedule: name,
    since: instantOrAgo,
    until: instantOrAgo,
    error: searched,
    text: searched,
    fingerprint: word(64),
  })
  .partial()
  .openapi("Filter");

type Words = z.output<typeof filterBody>;

/** Words of a request as the terms of a filter. What is not given is left out, since a term that is undefined is refused. */
export function readFilter(words: Words & Readonly<Record<string, unknown>>): JobsFilter {
  const given = Object.keys(filterBody.shape).filter((key) => words[key] !== undefined);
  return filterOf(Object.fromEntries(given.map((key) => [key, words[key]])));
}
