import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as immediate } from "node:timers/promises";
import { openSession, tokens } from "./test/api-session.ts";

interface Event {
  readonly event: string;
  readonly id: string;
  readonly data: Record<string, never>;
}

type Session = ReturnType<typeof openSession>;

/** Opens a stream and reads its events, until whoever reads has enough. */
async function* listen({ api }: Session, path: string, last?: string): AsyncGenerator<Event, void> {
  const headers = {
    Authorization: `Bearer ${tokens.read}`,
    ...(last === undefined ? {} : { "Last-Event-ID": last }),
  };
  const response = await api(new Request(`http://localhost${path}`, { headers }));
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
  assert(response.body);
  let text = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const parts = `${text}${chunk}`.split("\n\n");
    text = parts.pop() ?? "";
    for (const part of parts) {
      const field = (name: string): string => new RegExp(`^${name}: (.*)$`, "m").exec(part)?.[1] ?? "";
      if (field("event") !== "")
        yield { event: field("event"), id: field("id"), data: JSON.parse(field("data")) };
    }
  }
}

/** A stream, or null if there is no room for one. */
async function open({ api }: Session): Promise<Response | null> {
  const response = await api(new Request("http://localhost/events/queues"));
  if (response.status === 200) return response;
  await response.body?.cancel();
  return null;
}

async function first(events: AsyncGenerator<Event, void>): Promise<Event> {
  const { value } = await events.next();
  assert(value, "the stream ended");
  return value;
}

describe("event streams", () => {
  test("there are at most so many, one that is left makes room, and closing ends all", async () => {
    const session = openSession({ maxStreams: 1, authorize: () => ({ actor: "ann", role: "read" }) });
    const { app, ask, api } = session;
    await app.pauseQueue("post");
    const events = listen(session, "/events/queues");
    await first(events);
    assert.equal((await ask("GET /events/queues")).status, 429);
    await events.return();
    let status = 429;
    while (status === 429) {
      await immediate();
      status = (await ask("GET /events/queues")).status;
    }
    assert.equal(status, 200);
    let last = await open(session);
    while (last === null) {
      await immediate();
      last = await open(session);
    }
    api.close();
    assert.match(await last.text(), /^: alive\n\n/, "it has ended");
    await app.stop();
  });
});
