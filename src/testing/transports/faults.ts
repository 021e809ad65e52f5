import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../message/message.ts";
import type { PublishResult } from "../../message/transport.ts";
import type { FragilePlace } from "./harness.ts";
import { idOf, kindsOf, openTransport, Scene, until } from "./scene.ts";

const noWay = "nothing can stand in the way to this broker";

/** What must hold while the broker and the way to it fail. */
export function faultTests(place: () => FragilePlace): void {
  test("a broker that is down refuses, and once it is back messages arrive again by themselves [D3]", async () => {
    await using scene = await Scene.open(place());
    const [before, during, after] = [scene.messages(5), scene.messages(5), scene.messages(5)];
    await scene.publishPatiently(before);
    await place().stop();
    // What was under way on connections that nobody has missed yet may be ambiguous; then it is known to be down.
    await until("it is refused", async () => {
      const results = await scene.publish(scene.messages(1), 5_000);
      return results.every(({ kind }) => kind === "refused");
    });
    const results = await scene.publish(during);
    assert(
      results.every((result) => result.kind === "refused" && !result.permanent),
      JSON.stringify(kindsOf(results)),
    );
    await place().start();
    await scene.publishPatiently(after);
    const arrivals = await scene.arrivals();
    for (const message of [...before, ...after]) assert(arrivals.has(idOf(message)));
    for (const message of during) assert(!arrivals.has(idOf(message)), "what was refused has not arrived");
  });

  test("a broker that is down when the transport opens is a refusal of each publish, not a failed open", async () => {
    const route = await place().route();
    await place().stop();
    const transport = await openTransport(route);
    const scene = new Scene(place(), route, transport);
    const results = await scene.publish(scene.messages(3), 10_000);
    assert(
      results.every((result) => result.kind === "refused" && !result.permanent),
      JSON.stringify(kindsOf(results)),
    );
    await place().start();
    await scene.publishPatiently(scene.messages(3));
    await transport.close();
  });

  test("answers that are lost make a publish ambiguous, never refused", async (t) => {
    const { way } = place();
    if (way === null) return t.skip(noWay);
    await using scene = await Scene.open(place());
    await scene.publishPatiently(scene.messages(1));
    way.dropReplies(120_000);
    const messages = scene.messages(10);
    const since = performance.now();
    const results = await scene.publish(messages, 3_000);
    assert(performance.now() - since < 20_000, "it was given up in time");
    way.pass();
    await scene.publishPatiently(scene.messages(1));
    await check(scene, messages, results);
    assert(results.some(({ kind }) => kind === "ambiguous"));
  });

  test("a publish whose time runs out costs the next one nothing", async (t) => {
    const { way } = place();
    if (way === null) return t.skip(noWay);
    await using scene = await Scene.open(place());
    await scene.publishPatiently(scene.messages(1));
    for (let round = 0; round < 5; round++) {
      way.delay(500);
      await scene.publish(scene.messages(2), 300);
      way.pass();
      const results = await scene.publish(scene.messages(2));
      assert.deepEqual(kindsOf(results), ["acknowledged"], `round ${round}`);
    }
  });

  test("cut in the middle, whatever is refused has not arrived, and what is acknowledged has", async (t) => {
    const { way } = place();
    if (way === null) return t.skip(noWay);
    await using scene = await Scene.open(place());
    await scene.publishPatiently(scene.messages(1));
    const sent: Message[] = [];
    const answers: PublishResult[] = [];
    for (let round = 0; round < 8; round++) {
      const messages = scene.messages(400, (index) => `key-${index % 11}`);
      const publishing = scene.publish(messages, 10_000);
      await new Promise((resolve) => setTimeout(resolve, round * 4));
      way.cut(round % 2 === 0 ? 0 : 200);
      sent.push(...messages);
      answers.push(...(await publishing));
    }
    way.pass();
    await scene.publishPatiently(scene.messages(1));
    await check(scene, sent, answers);
  });

  test("in a black hole it gives up in time, and what it calls refused does not come out of it later", async (t) => {
    const { way } = place();
    if (way === null) return t.skip(noWay);
    await using scene = await Scene.open(place());
    await scene.publishPatiently(scene.messages(1));
    way.blackHole(120_000);
    const messages = scene.messages(2_500, (index) => `key-${index % 11}`);
    const since = performance.now();
    const results = await scene.publish(messages, 2_000);
    assert(performance.now() - since < 20_000, "it was given up in time");
    assert(results.every(({ kind }) => kind !== "acknowledged"));
    way.pass();
    await scene.publishPatiently(scene.messages(1));
    await check(scene, messages, results);
  });
}

async function check(
  scene: Scene,
  messages: readonly Message[],
  results: readonly PublishResult[],
): Promise<void> {
  const arrivals = await scene.arrivals();
  for (const [index, message] of messages.entries()) {
    const times = arrivals.get(idOf(message)) ?? 0;
    const result = results[index];
    assert(result !== undefined);
    if (result.kind === "acknowledged") assert(times > 0, "an acknowledged message has not arrived");
    if (result.kind === "refused")
      assert.equal(times, 0, `a message arrived that was refused: ${result.error.message}`);
    assert(times <= 1, `the transport sent a message ${times} times`);
  }
}
