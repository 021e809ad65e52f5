import assert from "node:assert/strict";
import { test } from "node:test";
import type { TransportPlace } from "./harness.ts";
import { idOf, kindsOf, newMessage, openTransport, patientMs, Scene } from "./scene.ts";

/** What must hold while nothing fails. */
export function deliveryTests(place: () => TransportPlace): void {
  test("every message arrives once, with its key, its headers and its body", async () => {
    await using scene = await Scene.open(place());
    const { destination } = scene.route;
    const messages = [
      newMessage(destination, { key: "plain" }),
      newMessage(destination, { key: "Grüße, 世界 🙂 100 %" }),
      newMessage(destination, { key: "k".repeat(512), body: JSON.stringify({ text: 'ü世界🙂\n\t"\\' }) }),
      newMessage(destination, { key: "null", body: "null" }),
      newMessage(destination, { key: "long", body: JSON.stringify("x".repeat(100_000)) }),
    ];
    assert.deepEqual(kindsOf(await scene.publish(messages)), ["acknowledged"]);
    const arrived = await scene.place.arrived(destination);
    assert.equal(arrived.length, messages.length);
    for (const { key, headers, body } of messages) {
      const found = arrived.find((one) => one.headers["idempotency-key"] === headers["idempotency-key"]);
      assert.equal(found?.key, key);
      assert.equal(found?.body, body);
      for (const [name, value] of Object.entries(headers)) assert.equal(found?.headers[name], value);
    }
  });

  test("an empty batch is no batch", async () => {
    await using scene = await Scene.open(place());
    assert.deepEqual(await scene.publish([]), []);
  });

  test("thousands of messages in one batch all arrive, in order within each key", async () => {
    await using scene = await Scene.open(place());
    const messages = scene.messages(3_000, (index) => `key-${index % 37}`);
    assert.deepEqual(kindsOf(await scene.publish(messages)), ["acknowledged"]);
    const arrived = await scene.place.arrived(scene.route.destination);
    assert.equal(arrived.length, messages.length);
    const inOrder = (ids: Iterable<string>) => [...ids];
    for (let key = 0; key < 37; key++) {
      const sent = messages.filter((message) => message.key === `key-${key}`).map(idOf);
      const found = arrived
        .filter((one) => one.key === `key-${key}`)
        .map(({ headers }) => headers["idempotency-key"] ?? "");
      assert.deepEqual(inOrder(found), inOrder(sent));
    }
  });

  test("batches that are published at the same time do not get in each other's way", async () => {
    await using scene = await Scene.open(place());
    const batches = Array.from({ length: 8 }, () => scene.messages(100));
    const results = await Promise.all(batches.map((batch) => scene.publish(batch)));
    assert.deepEqual(kindsOf(results.flat()), ["acknowledged"]);
    const arrivals = await scene.arrivals();
    assert.deepEqual(
      batches.flat().map((message) => arrivals.get(idOf(message))),
      batches.flat().map(() => 1),
    );
  });

  test("a message that is too large is refused for good, and its neighbours arrive", async () => {
    await using scene = await Scene.open(place());
    const { destination } = scene.route;
    const [before, after] = [scene.messages(20), scene.messages(20)];
    const large = newMessage(destination, { body: scene.place.tooLarge });
    const results = await scene.publish([...before, large, ...after]);
    const [result] = results.splice(20, 1);
    assert(result?.kind === "refused" && result.permanent, JSON.stringify(kindsOf([result as never])));
    assert.deepEqual(kindsOf(results), ["acknowledged"]);
    assert.equal((await scene.arrivals()).size, 40);
  });

  test("a destination that nobody has made is a refusal that passes, in plain words", async (t) => {
    const route = place().missing();
    if (route === null) return t.skip("here each destination exists");
    const transport = await openTransport(route);
    const [result] = await transport.publish([newMessage(route.destination)], { timeoutMs: patientMs });
    assert(result?.kind === "refused" && !result.permanent);
    assert.match(result.error.message, /topic|stream/);
    await transport.close();
  });

  test("the same dedupe id twice is stored once, where the broker promises that", async (t) => {
    if (!place().dedupes) return t.skip("this broker does not promise it");
    await using scene = await Scene.open(place());
    const [message] = scene.messages(1);
    assert(message !== undefined);
    const redriven = { ...message, dedupeId: message.dedupeId.replace(/:0$/, ":1") };
    assert.deepEqual(kindsOf(await scene.publish([message])), ["acknowledged"]);
    assert.deepEqual(kindsOf(await scene.publish([message, redriven])), ["acknowledged"]);
    assert.equal((await scene.arrivals()).get(idOf(message)), 2, "the message, and its redrive");
  });

  test("once closed it refuses, and closing twice is closing once", async () => {
    const scene = await Scene.open(place());
    await scene.publish(scene.messages(1));
    await scene.transport.close();
    await scene.transport.close();
    const [result] = await scene.publish(scene.messages(1));
    assert(result?.kind === "refused");
    assert.equal((await scene.arrivals()).size, 1);
  });

  test("one that was never used closes too", async () => {
    const scene = await Scene.open(place());
    await scene.transport.close();
  });
}
