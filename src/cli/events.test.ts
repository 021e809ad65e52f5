import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Escapement } from "../app/escapement.ts";
import { EscapementError } from "../errors.ts";
import { Events } from "../events.ts";
import type { JobFacts } from "../job.ts";
import { silentLogger } from "../log.ts";
import { showEvents } from "./events.ts";

/** What an app emits, without the rest of it. */
function source(): { readonly events: Events; readonly app: Escapement } {
  const events = new Events(silentLogger);
  const app = {
    on: (name, listener) => {
      events.on(name, listener);
      return app;
    },
  } as Pick<Escapement, "on"> as Escapement;
  return { events, app };
}

describe("events for a program", () => {
  test("an error has its name, message and code, whatever was thrown", (t) => {
    const { events, app } = source();
    showEvents(app, { json: true, withInputs: false });
    const log = t.mock.method(console, "log", () => {});
    const told = (error: unknown): unknown => {
      events.emit("error", { error, during: "reaping" });
      return JSON.parse(String(log.mock.calls.at(-1)?.arguments[0])).error;
    };
    assert.deepEqual(told(new TypeError("no such thing")), { name: "TypeError", message: "no such thing" });
    assert.deepEqual(told(new EscapementError("store-busy", "later")), {
      name: "EscapementError",
      message: "later",
      code: "store-busy",
    });
    assert.equal(told("a text"), "a text");
  });
});

test("a person reads which attempt of a job has started", (t) => {
  const { events, app } = source();
  showEvents(app, { json: false, withInputs: false });
  const log = t.mock.method(console, "log", () => {});
  events.emit("started", { job: { name: "mail", id: "m", attempt: 2 } as JobFacts });
  assert.match(String(log.mock.calls[0]?.arguments[0]), /started +mail m attempt 2$/);
});
