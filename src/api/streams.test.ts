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

/** A stream, or null where there is no room for one. */
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
  test("jobs that end are told of as they end, also those that ended while nobody listened", async () => {
    const session = openSession();
    const { app } = session;
    await app.start();
    const events = listen(session, "/events/ended?name=mail");
    const next = first(events);
    // The stream begins with what ends from now on, so jobs are ended until it has told of one.
    let isTold = false;
    void next.then(() => {
      isTold = true;
    });
    while (!isTold) await app.result(await app.enqueue("mail", { to: "ann" }));
    const told = await next;
    assert.deepEqual([told.event, told.data["state"]], ["ended", "succeeded"]);
    await events.return();
    const { id } = await app.enqueue("mail", { to: "bob" });
    await app.result(id);
    const resumed = listen(session, "/events/ended?name=mail", told.id);
    for await (const { data } of resumed) if (data["id"] === id) break;
    await app.stop();
  });

  test("one job is told of until it has ended, and then there is nothing to come back for", async () => {
    const session = openSession();
    const { app, ask, api } = session;
    await app.enqueue("mail", { to: "nobody" }, { id: "job" });
    const events = listen(session, "/jobs/job/events");
    assert.equal((await first(events)).data["state"], "waiting");
    await app.start();
    let last = { id: "", state: "" };
    for await (const { id, data } of events) last = { id, state: data["state"] ?? "" };
    assert.equal(last.state, "dead");
    assert.equal((await ask("GET /jobs/job/events", { headers: { "Last-Event-ID": last.id } })).status, 204);
    const again = await first(listen(session, "/jobs/job/events", "something older"));
    assert.equal(again.data["state"], "dead");
    assert.equal((await ask("GET /jobs/unknown/events")).status, 404);
    api.close();
    await app.stop();
  });

  test("figures of queues are sent when they change, and not again after a reconnect", async () => {
    const session = openSession();
    const { app } = session;
    await app.pauseQueue("post");
    const events = listen(session, "/events/queues");
    const { id } = await first(events);
    await events.return();
    const resumed = listen(session, "/events/queues", id);
    const next = first(resumed);
    await app.enqueue("mail", { to: "ann" });
    const { queues } = (await next).data;
    assert.equal((queues as unknown as readonly { due: number }[] | undefined)?.[0]?.due, 1);
    await resumed.return();
    await app.stop();
  });

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
