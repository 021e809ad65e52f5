import type { AnyDefinition, KeyFunction } from "../definition.ts";
import { checkPriority } from "../definition.ts";
import { parseDuration } from "../duration.ts";
import type { EnqueueOptions } from "../enqueue.ts";
import { EscapementError } from "../errors.ts";
import { withoutRawNumbers } from "../exact-json.ts";
import { slotOf } from "../id.ts";
import { jsonLoss } from "../json-loss.ts";
import { checkId, checkKey, checkName } from "../names.ts";
import { checkDate, checkInteger, checkKnown, checkOneOf } from "../options.ts";
import { idOf, type JobRef } from "../receipt.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { validate } from "../schema.ts";
import type { Settings } from "../settings.ts";
import type { NewJob } from "../store/jobs.ts";
import { withTrace } from "../telemetry/trace.ts";

const optionKeys = [
  "id",
  "delay",
  "runAt",
  "priority",
  "tags",
  "expireIn",
  "attempts",
  "after",
  "afterFailure",
  "tx",
] as const satisfies (keyof EnqueueOptions)[];

export const maxTags = 32;
const maxParents = 1_000;

/** Makes the job that the store will keep, or throws before anything is written. A promise only if the schema is asynchronous. */
export function makeJob(
  definition: AnyDefinition,
  input: unknown,
  options: EnqueueOptions,
  settings: Settings,
  runtime: Runtime,
): NewJob | Promise<NewJob> {
  checkKnown(options, optionKeys, "enqueue");
  // Before anything is awaited: the caller's context is that of its call.
  const trace = settings.telemetry === null ? null : settings.telemetry.current();
  const text = encodeInput(definition.name, input, settings.maxInputBytes);
  if (trace === null && definition.schema === null)
    return build(definition, text, withoutRawNumbers(input, text), options, settings, runtime);
  const make = (value: unknown): NewJob => {
    const job = build(definition, text, value, options, settings, runtime);
    return trace === null ? job : { ...job, tags: withTrace(job.tags, trace) };
  };
  if (definition.schema === null) return make(withoutRawNumbers(input, text));
  // What the worker will see has been through JSON, so that is what must fit the schema.
  const checked = validate(
    definition.schema,
    JSON.parse(text),
    `job ${JSON.stringify(definition.name)}`,
    input,
  );
  return checked instanceof Promise ? checked.then(make) : make(checked);
}

function build(
  definition: AnyDefinition,
  input: string,
  value: unknown,
  options: EnqueueOptions,
  settings: Settings,
  runtime: Runtime,
): NewJob {
  const id = options.id === undefined ? runtime.newId() : checkId(options.id);
  if (options.delay !== undefined && options.runAt !== undefined) {
    throw new EscapementError("invalid-option", "delay and runAt are mutually exclusive; pass one of them");
  }
  const { unique, debounce } = definition;
  if (debounce !== null && (options.delay !== undefined || options.runAt !== undefined)) {
    throw new EscapementError(
      "invalid-option",
      `job ${JSON.stringify(definition.name)} is debounced, so debounce sets its time; leave out delay and runAt`,
    );
  }
  return {
    id,
    name: definition.name,
    queue: definition.queue,
    delivery: definition.delivery,
    input,
    priority:
      options.priority === undefined ? definition.priority : checkPriority(options.priority, "priority"),
    tags: options.tags === undefined ? noTexts : checkTags(options.tags),
    runAt: options.runAt === undefined ? null : checkDate(options.runAt, "runAt"),
    delayMs: options.delay === undefined ? 0 : parseDuration(options.delay, "delay"),
    expireInMs:
      options.expireIn === undefined ? definition.expireInMs : parseDuration(options.expireIn, "expireIn"),
    attempts:
      options.attempts === undefined
        ? (definition.attempts ?? settings.attempts)
        : checkInteger(options.attempts, 1, 1_000, "attempts"),
    maxCrashes: definition.maxCrashes ?? settings.maxCrashes,
    after: options.after === undefined ? noTexts : checkParents(options.after),
    afterFailure:
      (options.afterFailure ?? "cancel") === "cancel"
        ? "cancel"
        : checkOneOf(options.afterFailure, ["cancel", "run"], "afterFailure"),
    unique:
      unique === null
        ? null
        : { key: scopedKey(definition, "unique", unique.key, value), forMs: unique.forMs },
    debounce:
      debounce === null
        ? null
        : {
            key: scopedKey(definition, "debounce", debounce.key, value),
            waitMs: debounce.waitMs,
            maxMs: debounce.maxMs,
          },
    // Field by field: this runs for every job, and spreading an object here costs more than all the rest.
    concurrencyKey: concurrencyKeyOf(definition, value),
    rateKey: rateKeyOf(definition, value),
    retention: definition.retention,
    relayed: definition.route !== null,
    slot: slotOf(id),
    schedule: null,
    fireAt: null,
  };
}

const noTexts: readonly string[] = [];

/** The keys under which a job is limited; an edited input may change them. */
export function limitKeys(
  definition: AnyDefinition,
  value: unknown,
): Pick<NewJob, "concurrencyKey" | "rateKey"> {
  return { concurrencyKey: concurrencyKeyOf(definition, value), rateKey: rateKeyOf(definition, value) };
}

function concurrencyKeyOf(definition: AnyDefinition, value: unknown): string | null {
  const { concurrency } = definition;
  return concurrency === null ? null : scopedKey(definition, "concurrency", concurrency.key, value);
}

function rateKeyOf(definition: AnyDefinition, value: unknown): string | null {
  const { rate } = definition;
  return rate === null ? null : scopedKey(definition, "rate", rate.key, value);
}

/** Keys of different definitions never meet: each starts with its definition's name. */
function scopedKey(definition: AnyDefinition, what: string, key: KeyFunction | null, value: unknown): string {
  if (key === null) return definition.name;
  // The value has just been validated against this definition's schema, which is what its key functions take.
  const own = key(value as never);
  return `${definition.name}\u001f${checkKey(own, `the ${what} key of job ${JSON.stringify(definition.name)}`)}`;
}

/** The JSON of an input. `undefined` stands for "no input" and becomes null. */
export function encodeInput(name: string, input: unknown, maxBytes: number): string {
  let text: string | undefined;
  try {
    text = input === undefined ? "null" : JSON.stringify(input);
  } catch (error) {
    throw notSerialisable(name, String(error), error);
  }
  if (text === undefined) throw notSerialisable(name, `it is a ${typeof input}`, undefined);
  const bytes = text.length * 3 <= maxBytes ? 0 : Buffer.byteLength(text);
  if (bytes > maxBytes) {
    throw new EscapementError(
      "input-too-large",
      `the input of job ${JSON.stringify(name)} has ${bytes} bytes of JSON, and ${maxBytes} are allowed; store it elsewhere and enqueue a reference, or raise maxInputBytes`,
    );
  }
  const loss = jsonLoss(input, text);
  if (loss === null) return text;
  throw notSerialisable(name, `it would lose ${loss}; convert that, or leave it out`, undefined);
}

function notSerialisable(name: string, why: string, cause: unknown): EscapementError {
  return new EscapementError(
    "input-not-serialisable",
    `the input of job ${JSON.stringify(name)} cannot be written as JSON: ${why}`,
    { cause },
  );
}

function checkTags(tags: readonly string[]): readonly string[] {
  if (!Array.isArray(tags) || tags.length > maxTags) {
    throw new EscapementError("invalid-option", `expected tags to be a list of at most ${maxTags} strings`);
  }
  return [...new Set(tags.map((tag) => checkName(tag, "a tag")))];
}

function checkParents(jobs: readonly JobRef[]): readonly string[] {
  if (!Array.isArray(jobs) || jobs.length > maxParents) {
    throw new EscapementError("invalid-option", `expected after to be a list of at most ${maxParents} jobs`);
  }
  return [...new Set(jobs.map((job) => idOf(job, "a job in after")))];
}
