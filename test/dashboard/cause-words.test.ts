import assert from "node:assert/strict";
import { test } from "node:test";
import { causeText } from "../../dashboard/src/screens/cause-words.ts";

test("a row says what holds a queue back from fields, in the page's own times", () => {
  const said = {
    what: 'queue "sms" may start 1 job per 1s; the next at 2026-11-18T12:00:00.514Z',
    advice: null,
  };
  const cases: [object, string][] = [
    [{ code: "queue-rate", limit: 1, perMs: 1_000, inMs: 514 }, "At its rate; the next starts in 0.5 s."],
    [{ code: "queue-rate", limit: 1, perMs: 1_000, inMs: -3 }, "At its rate; the next starts at once."],
    [{ code: "queue-concurrency", limit: 3, active: 3 }, "All 3 at once are running."],
    [
      { code: "key-concurrency", name: "mail", key: "7", active: 1 },
      "The key 7 of mail is full: 1 job running.",
    ],
    [
      { code: "key-concurrency", name: "mail", key: null, active: 2 },
      "The limit of mail is full: 2 jobs running.",
    ],
    [{ code: "no-handler", name: "mail", alive: 0 }, "No living node handles mail."],
    [{ code: "queue-paused", queue: "sms" }, "Paused: no job starts."],
  ];
  for (const [cause, text] of cases) assert.equal(causeText({ ...said, ...cause } as never), text);
});

test("a cause without words of its own says what the server says", () => {
  const cause = { code: "expired", what: "it has expired", advice: null };
  assert.equal(causeText(cause), "It has expired.");
});
