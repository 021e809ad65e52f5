import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PgClient, PgPool, PgStatement } from "./client.ts";
import { Link } from "./link.ts";

/** A pool whose one connection keeps what it was asked. */
function fakePool(): { pool: PgPool; asked: PgStatement[] } {
  const asked: PgStatement[] = [];
  const client = {
    query: async (statement: PgStatement) => {
      asked.push(statement);
      return { rows: [{ answer: "1" }] };
    },
    release() {},
    on() {},
    removeListener() {},
  };
  const pool = { connect: async () => client as unknown as PgClient, end: async () => undefined, on() {} };
  return { pool, asked };
}

const names = (asked: readonly PgStatement[]): (string | undefined)[] => asked.map(({ name }) => name);

describe("statements that are run often", () => {
  const ask = async (link: Link): Promise<void> => {
    for (const sql of ["select a", "select b", "select a"]) await link.run(sql, [], true);
    await link.run("select a", []);
  };
  const options = { callTimeoutMs: 60_000, place: "nowhere" };

  test("are prepared on the store's own direct connections, each text under its name", async () => {
    const { pool, asked } = fakePool();
    const link = new Link({ pool, owned: true, ...options });
    link.prepareOften();
    await ask(link);
    assert.deepEqual(names(asked), ["escapement_0", "escapement_1", "escapement_0", undefined]);
  });

  test("are not prepared behind a pooler, nor on a caller's pool", async () => {
    const behindPooler = fakePool();
    await ask(new Link({ pool: behindPooler.pool, owned: true, ...options }));
    const callers = fakePool();
    const link = new Link({ pool: callers.pool, owned: false, ...options });
    link.prepareOften();
    await ask(link);
    assert.deepEqual(names([...behindPooler.asked, ...callers.asked]), Array(8).fill(undefined));
  });

  test("are prepared up to a bound", async () => {
    const { pool, asked } = fakePool();
    const link = new Link({ pool, owned: true, ...options });
    link.prepareOften();
    for (let n = 0; n < 60; n += 1) await link.run(`select ${n}`, [], true);
    assert.equal(names(asked).filter((name) => name !== undefined).length, 50);
  });
});

describe("a statement behind another one", () => {
  /** A pool with one connection of pg, whose answers come when the test gives them. */
  function scene() {
    const story: string[] = [];
    const answers = new Map<string, PromiseWithResolvers<{ rows: { answer: string }[] }>>();
    const client = {
      pipeline: false,
      query({ text }: PgStatement) {
        story.push(`${text}${client.pipeline ? ", pipelined" : ""}`);
        const answer = Promise.withResolvers<{ rows: { answer: string }[] }>();
        answers.set(text, answer);
        return answer.promise;
      },
      release: (destroy: boolean) => void story.push(destroy ? "thrown away" : "put back"),
      on() {},
      removeListener() {},
    };
    const pool = { connect: async () => client as unknown as PgClient, end: async () => undefined, on() {} };
    const link = new Link({ pool, owned: true, callTimeoutMs: 60_000, place: "nowhere" });
    link.prepareOften();
    const run = (): Promise<unknown> =>
      link.runWith({ text: "first", values: [] }, { text: "second", values: [] }, () => story.push("lost"));
    const answer = (text: string): void => answers.get(text)?.resolve({ rows: [{ answer: "1" }] });
    const sent = async (): Promise<void> => {
      while (!answers.has("second")) await new Promise((resolve) => setImmediate(resolve));
    };
    return { story, client, answers, link, run, answer, sent };
  }

  test("is sent before the first is answered, and keeps nobody waiting", async () => {
    const { story, client, link, run, answer, sent } = scene();
    const running = run();
    await sent();
    answer("first");
    assert.equal(await running, 1);
    assert.deepEqual(story, ["first, pipelined", "second, pipelined"]);
    answer("second");
    await link.close();
    assert.deepEqual(story.slice(2), ["put back"]);
    assert.equal(client.pipeline, false);
  });

  test("fails alone, and its connection is not used again", async () => {
    const { story, answers, link, run, answer, sent } = scene();
    const running = run();
    await sent();
    answer("first");
    answers.get("second")?.reject(new Error("the connection broke"));
    assert.equal(await running, 1);
    await link.close();
    assert.deepEqual(story.slice(2), ["lost", "thrown away"]);
  });

  test("does not hide that the first failed", async () => {
    const { client, answers, link, run, answer, sent } = scene();
    const running = run();
    await sent();
    answers.get("first")?.reject(new Error("no such function"));
    answer("second");
    await assert.rejects(running, /no such function/);
    await link.close();
    assert.equal(client.pipeline, false);
  });
});
