import assert from "node:assert/strict";
import { test } from "node:test";
import type { Agent, Dispatcher } from "undici";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { Deadline } from "../deadline.ts";
import { post } from "./request.ts";

/** What only the client can do, and does at moments that no server can bring about. */
function scene() {
  const clock = new VirtualClock();
  const handlers: Dispatcher.DispatchHandler[] = [];
  const agent: Pick<Agent, "dispatch"> = {
    dispatch: (_options, handler) => {
      handlers.push(handler);
      return true;
    },
  };
  const aborted: string[] = [];
  /** A connection is there, and the client begins to send on it. */
  const start = (name: string): void => {
    const controller = { abort: () => aborted.push(name) };
    handlers[0]?.onRequestStart?.(controller as Partial<Dispatcher.DispatchController> as never, null);
  };
  /** The answer, in these pieces. */
  const answer = (...chunks: readonly Buffer[]): void => {
    const controller = { abort: () => {} } as Partial<Dispatcher.DispatchController> as never;
    handlers[0]?.onResponseStart?.(controller, 422, {}, "");
    for (const chunk of chunks) handlers[0]?.onResponseData?.(controller, chunk);
    handlers[0]?.onResponseEnd?.(controller, {});
  };
  const outcome = post({
    url: new URL("http://host/"),
    headers: [],
    body: "",
    sendBy: new Deadline(clock, 500),
    deadline: new Deadline(clock, 1_000),
    agent,
  });
  return { clock, start, answer, aborted, outcome };
}

test("what was given up while it waited for a connection is refused, and never sent", async () => {
  const { clock, start, aborted, outcome } = scene();
  await clock.advance(2_000);
  const result = await outcome;
  assert("maybeSent" in result && !result.maybeSent);
  start("late");
  assert.deepEqual(aborted, ["late"]);
});

test("what gets its connection after the time by which it had to be sent is refused, and never sent", async () => {
  const { clock, start, aborted, outcome } = scene();
  await clock.advance(600);
  start("late");
  const result = await outcome;
  assert("maybeSent" in result && !result.maybeSent);
  assert.deepEqual(aborted, ["late"]);
});

test("a request that the client would begin a second time is called off, and ambiguous", async () => {
  const { clock, start, aborted, outcome } = scene();
  start("first");
  start("second");
  assert.deepEqual(aborted, ["second"]);
  await clock.advance(2_000);
  const result = await outcome;
  assert("maybeSent" in result && result.maybeSent);
});

test("a character of the answer that lies across two chunks is kept", async () => {
  const { start, answer, outcome } = scene();
  const bytes = Buffer.from("für 👍");
  start("first");
  answer(...Array.from(bytes, (byte) => Buffer.of(byte)));
  const result = await outcome;
  assert("text" in result);
  assert.equal(result.text, "für 👍");
});

test("an answer that is cut within a character ends before it", async () => {
  const { start, answer, outcome } = scene();
  start("first");
  answer(Buffer.from("für "), Buffer.from("👍").subarray(0, 3));
  const result = await outcome;
  assert("text" in result);
  assert.equal(result.text, "für ");
});
