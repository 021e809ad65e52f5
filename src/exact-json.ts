/**
 * JSON whose numbers keep all their digits. JavaScript's numbers hold about 17 of them, so `9007199254740993` in an input would be shown, and
 * written back, as another number. A number that would change becomes a raw one: an object that `JSON.stringify` writes as it stood. Handlers
 * never see such: what they get was parsed in the usual way.
 */

/** What the language has and its types do not know yet. */
interface ExactJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
  rawJSON?(text: string): object;
  isRawJSON?(value: unknown): boolean;
}

const json = JSON as unknown as ExactJson;

/** Only texts with such a number are looked at closely: one of at least 16 digits and dots, or one with an exponent. */
const mayBeInexact = /[\d.]{16}|(?:^|[:[,\s])-?\d[\d.]*[eE]/;

/** Values that may hold raw numbers somewhere. */
const exact = new WeakSet<object>();

export function parseExact(text: string): unknown {
  const { rawJSON } = json;
  if (rawJSON === undefined || !mayBeInexact.test(text)) return JSON.parse(text);
  let hasRaw = false;
  return json.parse(text, (_key, one, { source }) => {
    const isRaw = typeof one === "number" && source !== undefined && !isSame(source, one);
    const value = isRaw ? rawJSON(source) : one;
    hasRaw ||= isRaw;
    // From the inside out, so whatever holds a raw number comes after it; that others come after it, too, does no harm.
    if (hasRaw && typeof value === "object" && value !== null) exact.add(value);
    return value;
  });
}

/** The digits of a number that would have lost some; null for every other value. */
export function rawNumber(value: unknown): string | null {
  return json.isRawJSON?.(value) === true ? (value as { readonly rawJSON: string }).rawJSON : null;
}

/** Whether it came from {@link parseExact} and may hold raw numbers: code that calculates must parse its JSON again. */
export function holdsRawNumbers(value: unknown): boolean {
  return typeof value === "object" && value !== null && exact.has(value);
}

/** A value that code can calculate with: itself, or what its JSON says in the usual way. */
export function withoutRawNumbers(value: unknown, text: string): unknown {
  return holdsRawNumbers(value) ? JSON.parse(text) : value;
}

function isSame(source: string, value: number): boolean {
  return plain(source) === plain(JSON.stringify(value));
}

/** Sign, digits without zeros at either end, and the power of ten of the last: the same for the same number. */
function plain(text: string): string {
  const [, sign = "", whole = "", fraction = "", power = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  if (short === "") return "0";
  return `${sign}${short}e${Number(power) - fraction.length + digits.length - short.length}`;
}
