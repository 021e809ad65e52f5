import assert from "node:assert/strict";
import { test } from "node:test";
import { createApi } from "../../src/api/create-api.ts";
import { createEscapement, defineJob, type Escapement } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { until } from "../../src/testing/transports/scene.ts";
import { type Bed, onEveryStore } from "./stores.ts";

interface Event {
  readonly event: string;
  readonly id: string;
  readonly data: Record<string, unknown>;
}

const mail = defineJob<{ to: string }>({
  name: "mail",
  queue: "post",
  retry: { attempts: 1 },
  run: ({ input }) => {
    if (input.to === "nobody") throw new RangeError("no route to nobody");
    return { sent: input.to };
  },
});

function openSession(bed: Bed): { readonly app: Escapement; readonly api: ReturnType<typeof createApi> } {
  const app = createEscapement({ store: bed.store(), jobs: [mail], poll: "200ms", log: silentLogger });
  return { app, api: createApi(app, { insecure: true }) };
}

type Session = ReturnType<typeof openSession>;

/** Opens a stream: nothing that happens from now on is missed. */
async function listen({ api }: Session, path: string, last?: string): Promise<AsyncGenerator<Event, void>> {
  const headers = last === undefined ? {} : { "Last-Event-ID": last };
  const { status, body } = await api(new Request(`http://localhost${path}`, { headers }));
  assert.equal(status, 200);
  assert(body);
  return eventsOf(body);
}

async function* eventsOf(body: NonNullable<Response["body"]>): AsyncGenerator<Event, void> {
  let text = "";
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    const parts = `${text}${chunk}`.split("\n\n");
    text = parts.pop() ?? "";
    for (const part of parts) {
      const field = (name: string): string => new RegExp(`^${name}: (.*)$`, "m").exec(part)?.[1] ?? "";
      if (field("event") !== "")
        yield { event: field("event"), id: field("id"), data: JSON.parse(field("data")) };
    }
  }
}

async function first(events: AsyncGenerator<Event, void>): Promise<Event> {
  const { value } = await events.next();
  assert(value, "the stream ended");
  return value;
}

/** Reads up to the end of this job, and returns what came, the last event last. */
async function upTo(events: AsyncGenerator<Event, void>, id: string): Promise<Event[]> {
  const came: Event[] = [];
  for (;;) {
    const event = await first(events);
    came.push(event);
    if (event.data["id"] === id) return came;
  }
}

onEveryStore("event streams", (bed) => {
  test("an end is sent once, however long ago its job was enqueued, also across a reconnect", async () => {
    const session = openSession(bed);
    await using app = session.app;
    await app.enqueue(mail, { to: "ann" }, { id: "old", delay: "1h" });
    // So many have been enqueued since, and ended, that no look at the newest would find it.
    await app.enqueueMany(
      mail,
      Array.from({ length: 50 }, (_, n) => ({ input: { to: "bob" }, id: `newer-${n}` })),
    );
    await app.start();
    await until("those have ended", async () => (await app.count({ states: ["succeeded"] })) === 50);
    const { now } = await app.health();
    await until("time has moved on", async () => (await app.health()).now > now);
    const events = await listen(session, "/events/ended?name=mail");
    await app.update("old", { delay: 0 });
    const came = await upTo(events, "old");
    await events.return();
    // While nobody listens, too; and one that the client has seen does not come again.
    await app.result(await app.enqueue(mail, { to: "nobody" }, { id: "missed" })).catch(() => {});
    const resumed = await listen(session, "/events/ended?name=mail", came.at(-1)?.id);
    came.push(...(await upTo(resumed, "missed")));
    await app.result(await app.enqueue(mail, { to: "zoe" }, { id: "last" }));
    came.push(...(await upTo(resumed, "last")));
    await resumed.return();
    const ids = came.map(({ data }) => String(data["id"]));
    assert.deepEqual(ids, ["old", "missed", "last"]);
  });

  test("one job is told of until it has ended, and then there is nothing to come back for", async () => {
    const session = openSession(bed);
    const { api } = session;
    await using app = session.app;
    await app.enqueue("mail", { to: "nobody" }, { id: "job" });
    const events = await listen(session, "/jobs/job/events");
    assert.equal((await first(events)).data["state"], "waiting");
    await app.start();
    let last = { id: "", state: "" };
    for await (const { id, data } of events) last = { id, state: String(data["state"]) };
    assert.equal(last.state, "dead");
    const headers = { "Last-Event-ID": last.id };
    assert.equal((await api(new Request("http://localhost/jobs/job/events", { headers }))).status, 204);
    api.close();
  });

  test("figures of queues are sent when they change, and not again after a reconnect", async () => {
    const session = openSession(bed);
    await using app = session.app;
    await app.pauseQueue("post");
    const events = await listen(session, "/events/queues");
    const { id } = await first(events);
    await events.return();
    const resumed = await listen(session, "/events/queues", id);
    const next = first(resumed);
    await app.enqueue("mail", { to: "ann" });
    const queues = (await next).data["queues"] as readonly { readonly due: number }[];
    assert.equal(queues[0]?.due, 1);
    await resumed.return();
  });
});
