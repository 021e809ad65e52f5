import { seededRandom } from "../../src/testing/seeded-random.ts";

/** A message as bytes, before any client has had a say in it. */
export interface RawMessage {
  /** What its body names it by, where the body was left alone. */
  readonly id: string;
  readonly headers: readonly (readonly [name: Buffer, value: Buffer | null])[];
  readonly key: Buffer | null;
  readonly body: Buffer | null;
  /** What was done to it. */
  readonly story: string;
  /** Whether no handler may ever see it. */
  readonly isFatal: boolean;
}

interface Draft {
  headers: [Buffer, Buffer | null][];
  key: Buffer | null;
  body: Buffer | null;
  isFatal: boolean;
  /** Headers that must stay as they are: they are why no handler may see it. */
  readonly spoilt: Set<string>;
}

/** Something that is done to a good message. It returns whether no handler may see the message any more. */
type Breakage = (draft: Draft, random: () => number) => boolean;

const required = [
  "idempotency-key",
  "escapement-namespace",
  "escapement-id",
  "escapement-name",
  "escapement-fire-at",
];
const mebibyte = 1_048_576;

function pick<T>(from: readonly T[], random: () => number): T {
  return from[Math.floor(random() * from.length)] as T;
}

function bytes(length: number, random: () => number): Buffer {
  return Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
}

const at = (draft: Draft, random: () => number): number => Math.floor(random() * draft.headers.length);
const nameAt = (draft: Draft, index: number): string => draft.headers[index]?.[0].toString() ?? "";

function replace(draft: Draft, name: string, value: string | Buffer | null): void {
  if (draft.spoilt.has(name)) return;
  const others = draft.headers.filter(([one]) => one.toString() !== name);
  draft.headers = [...others, [Buffer.from(name), typeof value === "string" ? Buffer.from(value) : value]];
}

/** As `replace`, for good: no handler may see it. */
function spoil(draft: Draft, name: string, value: string): true {
  replace(draft, name, value);
  draft.spoilt.add(name);
  return true;
}

/** What is done to whichever header chance picks. */
const toHeaders: Readonly<Record<string, Breakage>> = {
  missing(draft, random) {
    const index = at(draft, random);
    const name = nameAt(draft, index);
    if (draft.spoilt.has(name)) return true;
    if (required.includes(name)) draft.spoilt.add(name);
    draft.headers = draft.headers.filter(([one]) => one.toString() !== name);
    return required.includes(name);
  },
  doubled(draft, random) {
    const again = draft.headers[at(draft, random)];
    if (again !== undefined) draft.headers.push([Buffer.from(again[0]), again[1]]);
    return false;
  },
  "without a value"(draft, random) {
    const name = nameAt(draft, at(draft, random));
    replace(draft, name, pick([null, ""], random));
    if (required.includes(name)) draft.spoilt.add(name);
    return required.includes(name);
  },
  huge(draft, random) {
    replace(draft, nameAt(draft, at(draft, random)), "x".repeat(Math.floor(random() * 100_000)));
    return false;
  },
  "not UTF-8"(draft, random) {
    replace(draft, nameAt(draft, at(draft, random)), Buffer.concat([Buffer.from([0xff]), bytes(8, random)]));
    return false;
  },
  "with control characters"(draft, random) {
    const text = pick(["a\0b", "a\r\nescapement-name: other", "a\nb", "\u001b[2J", "\t \v"], random);
    replace(draft, nameAt(draft, at(draft, random)), text);
    return false;
  },
  "with broken percents"(draft, random) {
    const name = nameAt(draft, at(draft, random));
    replace(draft, name, pick(["%E4", "%", "%zz", "%00", "100%"], random));
    return false;
  },
};

const strangeNames = [
  "not a name",
  "nämé",
  "",
  "a:b",
  "\0",
  "__proto__",
  "constructor",
  "host",
  "authorization",
  "transfer-encoding",
  "content-length",
  "Nats-Expected-Stream",
  "Nats-Rollup",
  "Nats-Msg-Id",
  "body",
  "key",
  "escapement-error",
  "escapement-original-x",
];

/** What is done to headers that the receiver acts on, and to those that mean something to others. */
const toFacts: Readonly<Record<string, Breakage>> = {
  "a strange name"(draft, random) {
    const name = pick(strangeNames, random);
    draft.headers.push([Buffer.from(name), Buffer.from(pick(["x", "all", "chunked", "5"], random))]);
    return false;
  },
  "many strangers"(draft, random) {
    const many = Math.floor(random() * 500);
    for (let one = 0; one < many; one++) draft.headers.push([Buffer.from(`x-${one}`), bytes(16, random)]);
    return false;
  },
  "no headers at all"(draft) {
    draft.headers = [];
    return true;
  },
  "another job"(draft, random) {
    const names = ["unheard-of", "__proto__", "constructor", "toString", "WORK", "%77ork%00"];
    return spoil(draft, "escapement-name", pick(names, random));
  },
  "no time"(draft, random) {
    const times = ["soon", "2026-13-45T99:00:00Z", "NaN", "+999999-01-01T00:00:00.000Z", "T"];
    return spoil(draft, "escapement-fire-at", pick(times, random));
  },
  "an odd time"(draft, random) {
    const times = [
      "+275760-09-13T00:00:00.000Z",
      "-271821-04-20T00:00:00.000Z",
      "0",
      "1969-12-31T23:59:59.999Z",
    ];
    replace(draft, "escapement-fire-at", pick(times, random));
    replace(draft, "escapement-published-at", pick(times, random));
    return false;
  },
  "no count"(draft, random) {
    const name = pick(["escapement-attempt", "escapement-token", "escapement-redrives"], random);
    return spoil(draft, name, pick(["-1", "1e3", "0x10", "9".repeat(16), "one", " 1 2"], random));
  },
  "another guarantee"(draft, random) {
    const guarantees = ["twice", "AT-MOST-ONCE", "exactly-once", "at-most-once,"];
    return spoil(draft, "escapement-delivery", pick(guarantees, random));
  },
  "at-most-once"(draft, random) {
    replace(draft, "escapement-delivery", "at-most-once");
    replace(draft, "escapement-redrives", pick(["0", "1", "999999999999999"], random));
    return false;
  },
  "a key that none is"(draft, random) {
    return spoil(draft, "idempotency-key", pick(["a%0Ab", "k".repeat(513), "%00"], random));
  },
  "a key that many have"(draft) {
    replace(draft, "idempotency-key", "the-same-for-all");
    return false;
  },
  "a version of tomorrow"(draft) {
    replace(draft, "escapement-version", "99");
    replace(draft, "content-type", "application/cbor");
    return false;
  },
  "an odd key"(draft, random) {
    draft.key = pick([null, Buffer.alloc(0), bytes(40, random), Buffer.from("k".repeat(50_000))], random);
    return false;
  },
};

const toBody: Readonly<Record<string, Breakage>> = {
  "no body"(draft, random) {
    draft.body = pick([null, Buffer.alloc(0)], random);
    return true;
  },
  "half a body"(draft, random) {
    const { body } = draft;
    draft.body = body === null ? null : body.subarray(0, Math.floor(random() * body.length));
    return true;
  },
  "bytes for a body"(draft, random) {
    draft.body = Buffer.concat([Buffer.from([0xff]), bytes(100, random)]);
    return true;
  },
  "a body that is deep"(draft, random) {
    const depth = 1_000 + Math.floor(random() * 100_000);
    const isClosed = random() < 0.5;
    draft.body = Buffer.from(`${"[".repeat(depth)}${isClosed ? "]".repeat(depth) : ""}`);
    return true;
  },
  "a body that is large"(draft, random) {
    draft.body = Buffer.from(JSON.stringify({ wrong: "x".repeat(Math.floor(random() * 1.1 * mebibyte)) }));
    return true;
  },
  "a body right at the limit"(draft, random) {
    const short = Math.floor(random() * 2_000);
    draft.body = Buffer.alloc(mebibyte - short, "x");
    return true;
  },
  "keys of a prototype"(draft, random) {
    const bodies = [
      '{"__proto__":{"id":"x"}}',
      '{"constructor":{"prototype":{"id":"x"}}}',
      '{"id":{"toString":null}}',
      '{"__proto__":null,"hasOwnProperty":1}',
    ];
    draft.body = Buffer.from(pick(bodies, random));
    return true;
  },
  "odd JSON"(draft, random) {
    const bodies = [
      "1e999",
      '"\\ud800"',
      "[1,]",
      "\ufeffnull",
      "null",
      '{"id":1}',
      "NaN",
      '{"id":"a","id":2}',
    ];
    draft.body = Buffer.from(pick(bodies, random));
    return true;
  },
};

// Names that a client would refuse are where clients break: these come more often.
const breakages = [
  ...Object.entries({ ...toHeaders, ...toFacts, ...toBody }),
  ...Object.entries(toFacts).slice(0, 1),
  ...Object.entries(toFacts).slice(0, 1),
];
const mostBreakages = 3;

function draftOf(id: string): Draft {
  const headers = {
    "content-type": "application/json",
    "idempotency-key": `key-of-${id}`,
    "escapement-namespace": "fuzz",
    "escapement-id": id,
    "escapement-name": "work",
    "escapement-queue": "default",
    "escapement-delivery": "at-least-once",
    "escapement-fire-at": "2026-11-15T03:00:00.000Z",
    "escapement-attempt": "1",
    "escapement-token": "1",
    "escapement-redrives": "0",
  };
  return {
    headers: Object.entries(headers).map(([name, value]) => [Buffer.from(name), Buffer.from(value)]),
    key: Buffer.from(id),
    body: Buffer.from(JSON.stringify({ id })),
    isFatal: false,
    spoilt: new Set(),
  };
}

export function goodMessage(id: string): RawMessage {
  const { headers, key, body } = draftOf(id);
  return { id, headers, key, body, story: "good", isFatal: false };
}

/** Messages with one to three things wrong, the same ones for the same seed. */
export function* brokenMessages(seed: number, count: number): Generator<RawMessage> {
  const random = seededRandom(seed);
  for (let number = 0; number < count; number++) {
    const id = `fuzz-${seed}-${number}`;
    const draft = draftOf(id);
    const stories: string[] = [];
    const many = 1 + Math.floor(random() * mostBreakages);
    for (let one = 0; one < many; one++) {
      // Where nothing is left, what follows would be done to nothing.
      if (draft.headers.length === 0) break;
      const [story, breakage] = pick(breakages, random);
      stories.push(story);
      draft.isFatal = breakage(draft, random) || draft.isFatal;
    }
    const { headers, key, body, isFatal } = draft;
    yield { id, headers, key, body, isFatal, story: stories.join(", ") };
  }
}
