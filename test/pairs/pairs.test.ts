import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import { z } from "zod";
import { idempotencyKey } from "../../src/idempotency.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { createEscapement, type Delivery, defineJob, type Escapement } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { ReceivedMessage } from "../../src/message/source.ts";
import type { Route } from "../../src/message/transport.ts";
import { until } from "../../src/testing/transports/scene.ts";
import { type Effects, type Side, sides } from "./sides.ts";
import { type Broker, brokers } from "./ways.ts";

const deliveries = ["at-most-once", "at-least-once", "effectively-once"] as const satisfies Delivery[];
const delayMs = 1_500;
const cancelledAfterMs = 2_500;

interface Run {
  readonly id: string;
  readonly input: { readonly n: number };
  readonly fireAt: Date;
  readonly at: number;
}

/** What a handler was called with, and the definitions whose handlers tell it: for each guarantee a plain one and one with a key. */
function definitionsOf(route: Route, effects: Effects) {
  const runs: Run[] = [];
  const make = (delivery: Delivery, isKeyed: boolean) =>
    defineJob({
      name: isKeyed ? `${delivery} by customer` : delivery,
      queue: "pairs",
      delivery,
      input: z.object({ n: z.number() }),
      ...(isKeyed ? { concurrency: { key: ({ n }: { n: number }) => `customer ${n % 2}`, limit: 1 } } : {}),
      route,
      async run({ input, job, tx }) {
        runs.push({ id: job.id, input, fireAt: job.fireAt, at: Date.now() });
        if (delivery === "effectively-once") await tx((db) => effects.record(db as never, job.id));
      },
    });
  const plain = deliveries.map((delivery) => make(delivery, false));
  const keyed = deliveries.map((delivery) => make(delivery, true));
  return { plain, keyed, runs };
}

type Definitions = ReturnType<typeof definitionsOf>;

/** Enqueues and schedules everything that is to fire while all is well; answers the ids, and that of the job that was cancelled. */
async function ask(
  app: Escapement,
  { plain, keyed }: Definitions,
): Promise<{ ids: string[]; cancelled: string }> {
  const ids: string[] = [];
  const scheduledAt = new Date(Date.now() + 2 * delayMs);
  // On a busy machine their time must not have come before they are asked for.
  for (const job of plain) {
    await app.schedule(`once ${job.name}`, { at: scheduledAt }, job, { n: 1 });
    ids.push(`{once ${job.name}}@${scheduledAt.toISOString()}`);
  }
  for (const job of plain) {
    ids.push((await app.enqueue(job, { n: 1 }, { id: `now ${job.name}` })).id);
    ids.push((await app.enqueue(job, { n: 1 }, { id: `later ${job.name}`, delay: delayMs })).id);
  }
  for (const job of keyed) {
    const items = Array.from({ length: 6 }, (_, n) => ({ input: { n }, id: `${job.name} ${n}` }));
    ids.push(...(await app.enqueueMany(job, items)).map(({ id }) => id));
  }
  const [, job] = plain;
  assert(job !== undefined);
  const { id: edited } = await app.enqueue(job, { n: 1 }, { id: "edited", delay: "1h" });
  assert.equal((await app.update(edited, { input: { n: 2 }, delay: delayMs })).outcome, "updated");
  const { id: cancelled } = await app.enqueue(job, { n: 1 }, { id: "cancelled", delay: cancelledAfterMs });
  assert.equal((await app.cancel(cancelled)).cancelled, 1);
  // Due after the one that was cancelled: once it has run, that one's time is over.
  const { id: last } = await app.enqueue(job, { n: 1 }, { id: "last", delay: cancelledAfterMs + 200 });
  return { ids: [...ids, edited, last], cancelled };
}

/** Each job came once, with the key and the headers that its record in the store calls for, and its handler ran once and not early. */
async function checkArrival(
  app: Escapement,
  id: string,
  messages: readonly ReceivedMessage[],
  runs: readonly Run[],
) {
  const job = await app.get(id);
  const [message] = messages.filter(
    ({ headers }) => decodeURIComponent(headers["escapement-id"] ?? "") === id,
  );
  const [run] = runs.filter((one) => one.id === id);
  assert(job !== null && message !== undefined && run !== undefined, `${id} did not arrive`);
  assert.equal(job.state, "succeeded", id);
  const { namespace } = app.settings;
  const { schedule, fireAt, name, delivery } = job;
  const isKeyed = name.endsWith("by customer");
  assert.equal(message.key, isKeyed ? `customer ${run.input.n % 2}` : id);
  const headers = Object.entries({
    "content-type": "application/json",
    "idempotency-key": idempotencyKey({ namespace, id, schedule, fireAt }),
    "escapement-namespace": namespace,
    "escapement-name": name,
    "escapement-queue": "pairs",
    "escapement-delivery": delivery,
    "escapement-fire-at": fireAt.toISOString(),
    "escapement-attempt": "1",
    "escapement-redrives": "0",
    "escapement-schedule": schedule ?? undefined,
  });
  for (const [header, value] of headers) {
    const got: string | undefined = message.headers[header];
    assert.equal(got === undefined ? got : decodeURIComponent(got), value, `${header} of ${id}`);
  }
  assert.deepEqual(run.fireAt, fireAt, id);
  assert.deepEqual(run.input, job.input, id);
  assert(run.at >= fireAt.getTime(), `${id} ran ${fireAt.getTime() - run.at} ms early`);
  if (id.startsWith("later")) assert.equal(fireAt.getTime() - job.enqueuedAt.getTime(), delayMs, id);
  if (schedule !== null) assert.equal(id, `{${schedule}}@${fireAt.toISOString()}`);
}

/** Changed when the relay has read them ahead of their time already: what the change was acknowledged for does not fire as it was. */
async function lastMoment(app: Escapement, { plain, runs }: Definitions): Promise<string[]> {
  const [, job] = plain;
  assert(job !== undefined);
  // One tag is one slot, which is read as a whole.
  const [now, edited, cancelled, last] = ["now", "edited", "cancelled", "last"].map((id) => `{tag} ${id}`);
  assert(now && edited && cancelled && last);
  const item = (id: string, delay: number) => ({ input: { n: 1 }, id, delay });
  await app.enqueueMany(job, [item(now, 0), item(edited, 900), item(cancelled, 900), item(last, 1_000)]);
  const hasRun = (id: string) => (): boolean => runs.some((run) => run.id === id);
  await until("the first has run", hasRun(now));
  const { outcome } = await app.update(edited, { input: { n: 2 } });
  const tally = await app.cancel(cancelled);
  await until("the others' time is over", () => hasRun(edited)() && hasRun(last)());
  // On a machine that is too slow for it the change comes too late, and says so.
  assert.equal(runs.find(({ id }) => id === edited)?.input.n, outcome === "updated" ? 2 : 1);
  await until("it has ended", async () => (await app.get(cancelled))?.finishedAt !== null);
  const state = (await app.get(cancelled))?.state;
  // Of one that was named already it is asked, and may come too late.
  if (tally.cancelled === 1) assert.equal(state, "cancelled");
  if (state !== "cancelled") await until("it has run", hasRun(cancelled));
  else assert(!hasRun(cancelled)(), "it was cancelled, and ran");
  return state === "cancelled" ? [now, edited, last] : [now, edited, cancelled, last];
}

/** The broker cannot be reached: everything is rolled back, and delivered once it can be; what may be sent only once ends instead. */
async function outage(
  app: Escapement,
  { plain, runs }: Definitions,
  way: Awaited<ReturnType<Broker["way"]>>,
) {
  await way.close();
  const ids = plain.map(({ delivery }) => `outage ${delivery}`);
  for (const [index, job] of plain.entries()) await app.enqueue(job, { n: 1 }, { id: ids[index] ?? "" });
  const [once = "", ...again] = ids;
  await until("all are rolled back", async () => {
    const jobs = await Promise.all(again.map((id) => app.get(id)));
    return jobs.every((job) => job !== null && job.rollbacks > 0);
  });
  await until("the at-most-once job has ended", async () => (await app.get(once))?.finishedAt !== null);
  await way.reopen();
  await until("the others are delivered", async () => {
    const jobs = await Promise.all(again.map((id) => app.get(id)));
    return jobs.every((job) => job?.state === "succeeded" && runs.some(({ id }) => id === job.id));
  });
  // Refused, or cut off in the middle and nobody knows.
  assert(["dead", "lost"].includes((await app.get(once))?.state ?? ""));
  return { once, again };
}

async function story(side: Side, broker: Broker): Promise<void> {
  await using effects = await side.effects();
  await using way = await broker.way();
  const definitions = definitionsOf(way.route, effects);
  const { plain, keyed, runs } = definitions;
  const messages: ReceivedMessage[] = [];
  await using inbox = createInbox({ store: effects.inbox });
  await way.consume({ jobs: [...plain, ...keyed], inbox, log: silentLogger }, (one) => messages.push(one));
  await using app = createEscapement({
    store: side.store(),
    namespace: `pair ${randomUUID()}`,
    jobs: [...plain, ...keyed],
    log: silentLogger,
  });
  await app.start();
  const { ids, cancelled } = await ask(app, definitions);
  await until("everything has run", () => ids.every((id) => runs.some((run) => run.id === id)));
  await until("the sender knows", async () => (await app.count({ states: ["succeeded"] })) === ids.length);
  for (const id of ids) await checkArrival(app, id, messages, runs);
  assert.equal(messages.length, ids.length, "each job is one message");
  assert.equal((await app.get(cancelled))?.state, "cancelled");
  const changed = await lastMoment(app, definitions);
  const { again } = await outage(app, definitions, way);
  await app.stop();
  const sorted = (all: readonly string[]): string[] => all.toSorted();
  assert.deepEqual(
    sorted(runs.map(({ id }) => id)),
    sorted([...ids, ...changed, ...again]),
    "each handler ran once",
  );
  const expected = [...ids, ...again].filter((id) => id.includes("effectively-once"));
  assert.deepEqual(sorted(await effects.ids()), sorted(expected), "each effect was committed once");
}

const pairs: readonly (readonly [store: keyof typeof sides, broker: keyof typeof brokers])[] = [
  ["sqlite", "Redis Streams"],
  ["sqlite", "HTTP"],
  ["postgres", "Redis Streams"],
  ["postgres", "HTTP"],
  ["postgres", "Kafka"],
  ["postgres", "NATS JetStream"],
  ["mysql", "Redis Streams"],
  ["mysql", "HTTP"],
  ["redis", "Redis Streams"],
  ["redis", "HTTP"],
];

describe("from every store through a broker to a consumer [B1, B8]", { concurrency: 3 }, () => {
  for (const [store, broker] of pairs) {
    const skip = sides[store].skip || brokers[broker].skip;
    test(`${store} and ${broker}`, { skip }, () => story(sides[store], brokers[broker]));
  }
});
