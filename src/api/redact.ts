import { describe, EscapementError } from "../errors.ts";
import { parseExact, rawNumber } from "../exact-json.ts";

/** What to mask: a key of inputs and results by its name, whatever its case, or whatever a pattern matches in a string. */
export type Redaction = string | RegExp;

export const mask = "[redacted]";

/** Fields that say which job or queue is meant: masked, they could not be asked for. Inside of inputs and results nothing is spared. */
const plainFields: ReadonlySet<string> = new Set(
  "id ids jobId sampleId lastJobId fingerprint cursor name names queue queues key schedule state fate outcome kind code type".split(
    " ",
  ),
);
/** Fields that hold what applications wrote. */
const freeFields: ReadonlySet<string> = new Set(["input", "result", "progress"]);

/** Masks values before they leave. */
export class Redactor {
  readonly #keys: ReadonlySet<string>;
  readonly #patterns: readonly (readonly [RegExp, string])[];

  constructor(redactions: readonly Redaction[]) {
    const keys = redactions.filter((one) => typeof one === "string");
    for (const one of redactions) {
      if ((typeof one === "string" && one !== "") || one instanceof RegExp) continue;
      throw new EscapementError(
        "invalid-option",
        `expected each of redact to be the name of a key or a RegExp, got ${describe(one)}`,
      );
    }
    this.#keys = new Set(keys.map((key) => key.toLowerCase()));
    this.#patterns = [
      // A handler may put an input into its error: "key": "value", key=value.
      ...keys.map((key) => [inText(key), `$1${mask}`] as const),
      ...redactions.flatMap((one) =>
        one instanceof RegExp ? [[new RegExp(one.source, withGlobal(one.flags)), mask] as const] : [],
      ),
    ];
  }

  get isActive(): boolean {
    return this.#patterns.length > 0;
  }

  /** The JSON of a value, masked. */
  stringify(value: unknown): string {
    const text = JSON.stringify(value) ?? "null";
    return this.isActive ? JSON.stringify(this.#masked(parseExact(text), false)) : text;
  }

  /** Whether a value holds a mask: then it was read masked and must not be written back. */
  holdsMask(value: unknown): boolean {
    return this.isActive && (JSON.stringify(value) ?? "").includes(mask);
  }

  #masked(value: unknown, isFree: boolean): unknown {
    if (typeof value === "string") return this.#text(value);
    if (Array.isArray(value)) return value.map((one) => this.#masked(one, isFree));
    if (typeof value !== "object" || value === null || rawNumber(value) !== null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => {
        if (this.#keys.has(key.toLowerCase()) && (isFree || !plainFields.has(key))) return [key, mask];
        if (!isFree && plainFields.has(key) && typeof one !== "object") return [key, one];
        return [key, this.#masked(one, isFree || freeFields.has(key))];
      }),
    );
  }

  #text(text: string): string {
    return this.#patterns.reduce((masked, [pattern, by]) => masked.replace(pattern, by), text);
  }
}

function inText(key: string): RegExp {
  const escaped = key.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  return new RegExp(
    `((?<![\\p{L}\\p{N}_])\\\\?["']?${escaped}\\\\?["']?\\s*[:=]\\s*)(?:\\\\?"(?:[^"\\\\]|\\\\.)*"|'[^']*'|[^\\s,;&}\\])]+)`,
    "giu",
  );
}

function withGlobal(flags: string): string {
  return flags.replaceAll(/[gy]/g, "").concat("g");
}
