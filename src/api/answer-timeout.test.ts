import assert from "node:assert/strict";
import { test } from "node:test";
import { createEscapement } from "../index.ts";
import { silentLogger } from "../log.ts";
import { memory } from "../stores/memory/index.ts";
import { createApi } from "./create-api.ts";

test("a store that hangs is answered for in time, and the operation may still complete", async (t) => {
  const hung = Promise.withResolvers<void>();
  const inner = memory();
  const app = createEscapement({
    log: silentLogger,
    store: {
      async open(context) {
        const store = await inner.open(context);
        return new Proxy(store, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name, target);
            if (name === "get") return async () => await hung.promise.then(() => []);
            return typeof value === "function" ? value.bind(target) : value;
          },
        });
      },
    },
  });
  t.after(async () => {
    hung.resolve();
    await app.stop();
  });
  const api = createApi(app, { insecure: true, answerTimeout: "50ms" });
  const response = await api(new Request("http://localhost/jobs/some"));
  assert.equal(response.status, 503);
  const { code, detail } = (await response.json()) as { code: string; detail: string };
  assert.deepEqual(
    [code, detail],
    ["store-unavailable", "no answer within 50ms; the operation may still complete"],
  );
});
