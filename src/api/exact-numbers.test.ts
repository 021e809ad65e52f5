import assert from "node:assert/strict";
import { test } from "node:test";
import { createEscapement, defineJob } from "../index.ts";
import { memory } from "../stores/memory/index.ts";
import { createApi } from "./create-api.ts";

const big = '{"account":9007199254740993,"secret":"x"}';
const bigger = '{"account":12345678901234567891,"secret":"x"}';

test("an input keeps all digits of its numbers on the way in, through an edit, and on the way out", async () => {
  const pay = defineJob<{ account: number; secret: string }>({
    name: "pay",
    concurrency: { key: ({ account }) => account.toFixed(0), limit: 1 },
  });
  await using app = createEscapement({ store: memory(), jobs: [pay] });
  const plain = createApi(app, { insecure: true });
  const masked = createApi(app, { insecure: true, redact: ["secret"] });
  const ask = async (api: typeof plain, method: string, path: string, body?: string): Promise<string> => {
    const headers = body === undefined ? {} : { "Content-Type": "application/json" };
    const sent = { method, headers, ...(body === undefined ? {} : { body }) };
    const response = await api(new Request(`http://localhost${path}`, sent), { address: "127.0.0.1" });
    const text = await response.text();
    assert(response.ok, text);
    return text;
  };
  await ask(plain, "POST", "/jobs", `{"name":"pay","id":"p1","input":${big}}`);
  assert.match(await ask(plain, "GET", "/jobs/p1"), /"account":9007199254740993[,}]/);
  assert.equal((await app.get("p1"))?.concurrencyKey, "pay\u001f9007199254740992", "handlers have doubles");
  await ask(plain, "PATCH", "/jobs/p1", `{"input":${bigger}}`);
  assert.match(await ask(plain, "GET", "/jobs/p1"), /"account":12345678901234567891[,}]/);
  const hidden = await ask(masked, "GET", "/jobs/p1");
  assert.match(hidden, /"account":12345678901234567891,"secret":"\[redacted\]"/);
  plain.close();
  masked.close();
});
