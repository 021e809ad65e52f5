import { type Duration, parseDuration } from "../duration.ts";
import { describe, EscapementError } from "../errors.ts";
import { checkDate, checkInteger, checkKnown, checkOneOf } from "../options.ts";
import { type CronFields, parseCron } from "./fields.ts";
import { type CronRules, defaultCronRules, instantsAfter } from "./next.ts";
import { type Zone, zoneOf } from "./zone.ts";

/** When a schedule fires: by `cron`, `every` or `at`, exactly one of them. */
export interface FireSpec {
  /** `"0 3 * * *"`; see {@link parseCron}. */
  readonly cron?: string;
  /** At whole multiples of this since 1970 (or since `startAt`), so it means the same on every node and after every restart. */
  readonly every?: Duration;
  /** Once. */
  readonly at?: Date;
  /** An IANA name, for `cron`. @default "UTC" */
  readonly timezone?: string;
  /** How day of month and day of week combine where both are given. @default "or" */
  readonly days?: "or" | "and";
  /** A fixed time that the clocks skip fires right after the gap, or not. @default "run-after" */
  readonly gap?: "run-after" | "skip";
  /** A time that the clocks show twice fires the first time, or both. @default fixed times the first, wildcards and steps of hours or minutes both */
  readonly repeat?: "first" | "both";
  /** Nothing fires before it. */
  readonly startAt?: Date;
  /** Nothing fires after it. */
  readonly endAt?: Date;
}

export const fireSpecKeys = [
  "cron",
  "every",
  "at",
  "timezone",
  "days",
  "gap",
  "repeat",
  "startAt",
  "endAt",
] as const satisfies (keyof FireSpec)[];

type Source =
  | { readonly kind: "cron"; readonly fields: CronFields; readonly zone: Zone; readonly rules: CronRules }
  | { readonly kind: "every"; readonly everyMs: number; readonly anchor: number }
  | { readonly kind: "at"; readonly at: number };

/** The times of a schedule, checked and ready to be counted. */
export class FireTimes {
  readonly source: Source;
  readonly #startAt: number;
  readonly #endAt: number;

  /** @throws EscapementError `invalid-schedule`, `invalid-cron` or `invalid-zone`. */
  constructor(spec: FireSpec) {
    this.source = resolveSource(spec);
    this.#startAt =
      spec.startAt === undefined ? Number.NEGATIVE_INFINITY : checkDate(spec.startAt, "startAt").getTime();
    this.#endAt =
      spec.endAt === undefined ? Number.POSITIVE_INFINITY : checkDate(spec.endAt, "endAt").getTime();
    if (this.#endAt < this.#startAt) {
      throw new EscapementError(
        "invalid-schedule",
        `expected endAt to be after startAt (${spec.startAt?.toISOString()}), got ${spec.endAt?.toISOString()}`,
      );
    }
  }

  /** The instants after `after` (exclusive), in order. */
  *after(after: number): Generator<number> {
    for (const instant of this.#all(Math.max(after, this.#startAt - 1))) {
      if (instant > this.#endAt) return;
      yield instant;
    }
  }

  /** The first instant after `after`, or null when there is none. */
  next(after: number): number | null {
    for (const instant of this.after(after)) return instant;
    return null;
  }

  *#all(after: number): Generator<number> {
    const { source } = this;
    if (source.kind === "cron") {
      yield* instantsAfter(source.fields, source.zone, source.rules, after);
    } else if (source.kind === "at") {
      if (source.at > after) yield source.at;
    } else {
      const { everyMs, anchor } = source;
      for (let count = Math.floor((after - anchor) / everyMs) + 1; ; count++) yield anchor + count * everyMs;
    }
  }
}

function resolveSource(spec: FireSpec): Source {
  const given = (["cron", "every", "at"] as const).filter((key) => spec[key] !== undefined);
  if (given.length !== 1) {
    throw new EscapementError(
      "invalid-schedule",
      `expected a schedule to have one of cron, every and at, got ${given.length === 0 ? "none" : given.join(" and ")}`,
    );
  }
  if (spec.cron !== undefined) {
    return {
      kind: "cron",
      fields: parseCron(spec.cron),
      zone: zoneOf(checkZone(spec.timezone ?? "UTC")),
      rules: resolveRules(spec),
    };
  }
  if (spec.at !== undefined) return { kind: "at", at: checkDate(spec.at, "at").getTime() };
  const everyMs = checkInteger(
    parseDuration(spec.every, "every"),
    1,
    Number.MAX_SAFE_INTEGER,
    "every (in milliseconds)",
  );
  return { kind: "every", everyMs, anchor: spec.startAt?.getTime() ?? 0 };
}

function checkZone(name: unknown): string {
  if (typeof name === "string" && name !== "") return name;
  throw new EscapementError(
    "invalid-zone",
    `expected timezone to be an IANA name such as "Europe/Berlin", got ${describe(name)}`,
  );
}

function resolveRules(spec: FireSpec): CronRules {
  return {
    days: checkOneOf(spec.days ?? defaultCronRules.days, ["or", "and"], "days"),
    gap: checkOneOf(spec.gap ?? defaultCronRules.gap, ["run-after", "skip"], "gap"),
    repeat:
      spec.repeat === undefined
        ? null
        : checkOneOf<"first" | "both">(spec.repeat, ["first", "both"], "repeat"),
  };
}

export interface NextFireTimesOptions {
  /** Exclusive. @default now */
  readonly after?: Date;
  /** @default 1 */
  readonly count?: number;
}

const maxCount = 100_000;

/**
 * The next times at which a schedule fires; fewer than asked for where there are no more.
 *
 * @example
 * nextFireTimes({ cron: "0 2 * * *", timezone: "Europe/Berlin" }, { count: 10 });
 */
export function nextFireTimes(spec: FireSpec | string, options: NextFireTimesOptions = {}): Date[] {
  checkKnown(options, ["after", "count"], "nextFireTimes");
  const resolved = typeof spec === "string" ? { cron: spec } : spec;
  checkKnown(resolved, fireSpecKeys, "a schedule");
  const after = options.after === undefined ? Date.now() : checkDate(options.after, "after").getTime();
  const count = checkInteger(options.count ?? 1, 1, maxCount, "count");
  const times: Date[] = [];
  for (const instant of new FireTimes(resolved).after(after)) {
    times.push(new Date(instant));
    if (times.length === count) break;
  }
  return times;
}
