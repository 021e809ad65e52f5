import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Escapement } from "../app/escapement.ts";
import { EscapementError } from "../errors.ts";
import { Events } from "../events.ts";
import { silentLogger } from "../log.ts";
import { showEvents } from "./events.ts";

describe("events for a program", () => {
  test("an error has its name, message and code, whatever was thrown", (t) => {
    const events = new Events(silentLogger);
    const app = {
      on: (name, listener) => {
        events.on(name, listener);
        return app;
      },
    } as Pick<Escapement, "on"> as Escapement;
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
